"""Seed sources: one class per file, its defaults in ``conf/seeds/<name>.yaml``."""
