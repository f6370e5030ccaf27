"""Kinds of answers, a folder each; engines import :mod:`medtest.core.tasks.base` alone and ask the task object."""
