"""Oracles: one class in one file, its defaults in ``conf/oracles/<name>.yaml``."""
