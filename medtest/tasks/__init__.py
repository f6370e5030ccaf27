"""Kinds of answers, a folder each; engines import :mod:`medtest.tasks.base` alone and ask the task object."""
