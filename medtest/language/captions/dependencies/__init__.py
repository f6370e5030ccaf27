"""Pools from dependency parses: one mapping of graphs, fed by spaCy and by Stanza."""
