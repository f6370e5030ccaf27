"""Classifiers: one class per file, with its preset in ``conf/model/<name>.yaml``."""
