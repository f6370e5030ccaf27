"""The report on systems that answer questions."""
