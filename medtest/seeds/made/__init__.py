"""Synthetic source cases: phantoms, films, abdomens."""
