"""Public data sets: facts in ``facts.yaml`` and one recogniser for each way they are packed."""
