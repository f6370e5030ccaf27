"""Vocabulary, spelling and patterns of typed answers."""
