"""Report on systems that answer questions."""
