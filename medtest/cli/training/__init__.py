"""``medtest train``: command line and output."""
