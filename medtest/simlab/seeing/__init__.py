"""Image analysis of the simulated product."""
