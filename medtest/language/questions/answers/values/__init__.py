"""Values that are read from typed answers."""
