"""Public data sets as people download them: facts in ``facts.yaml``, one recogniser for each way they are packed."""
