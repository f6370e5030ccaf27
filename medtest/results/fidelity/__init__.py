"""Measures of generated pictures: realism, variety and agreement with their prompts.

All are pure functions of records, of features of the recorded pictures (:mod:`medtest.readers.embeddings`), and of what
a reader detected in them.
"""
