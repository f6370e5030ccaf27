"""Shards of a run: checks and merging."""
