"""Classifiers: each with its preset in ``conf/model/<name>.yaml``."""
