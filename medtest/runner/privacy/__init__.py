"""Privacy rules of records, logs and artefacts."""
