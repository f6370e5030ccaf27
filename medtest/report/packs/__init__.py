"""Suites and finished runs as single ZIP files without code, to be checked and run elsewhere."""
