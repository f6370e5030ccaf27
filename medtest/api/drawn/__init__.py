"""Generated pictures: fetched, decoded within limits, stored by content."""
