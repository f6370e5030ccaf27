"""Pools from dependency parses by spaCy or Stanza."""
