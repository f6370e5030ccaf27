"""Gates and the log of their evaluations."""
