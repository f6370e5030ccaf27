"""Suites and finished runs as one ZIP file each, to be checked and run elsewhere; no code is in them."""
