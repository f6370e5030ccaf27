"""Source cases that are made: phantoms, films, abdomens."""
