"""Progress and outcome of a run."""
