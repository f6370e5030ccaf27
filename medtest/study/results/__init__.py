"""Ratings of the human study and their tables."""
