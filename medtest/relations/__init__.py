"""Metamorphic relations: one class in one file, its severities in ``conf/relations/<name>.yaml``."""
