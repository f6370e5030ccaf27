"""Parser without dependencies, for the controlled English of the templates and for human captions."""
