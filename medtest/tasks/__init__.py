"""Kinds of answers, one package each; engines import only :mod:`medtest.core.tasks.base` and use the task object."""
