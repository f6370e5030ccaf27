"""Base layer of the package: cases, outputs, records, errors, files, and the bases of tasks and oracles."""
