"""Vocabulary of the whole package: cases, outputs, records, errors, files, and the bases of tasks and oracles."""
