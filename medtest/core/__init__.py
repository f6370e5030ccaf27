"""Base layer of the package: cases, outputs, records, errors, files, and the bases of tasks and oracles."""

__version__ = "0.2.0"
