"""Bases of kinds of answer: the task, its results, panels and views."""
