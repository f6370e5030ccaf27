"""Metamorphic relations: one class per file, its severities in ``conf/relations/<name>.yaml``."""
