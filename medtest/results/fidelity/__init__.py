"""Figures of pictures that records name: how like real ones they look, how varied they are, how well they fit words.

Everything here is a pure function of records, of features of the pictures that they name
(:mod:`medtest.readers.embeddings`), and of what a reader saw in them.
"""
