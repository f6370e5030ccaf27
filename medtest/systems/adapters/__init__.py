"""Adapters for external systems: a Python function, an exported graph, a command-line tool, a folder of answers.

Their interface is documented in :mod:`medtest.core.tasks.border`.
"""
