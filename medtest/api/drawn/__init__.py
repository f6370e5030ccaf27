"""Pictures that services draw: fetched, decoded within bounds, kept by content."""
