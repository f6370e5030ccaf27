"""Extraction of values from text, by type."""
