"""Classifiers: one class in one file, its preset in ``conf/model/<name>.yaml``."""
