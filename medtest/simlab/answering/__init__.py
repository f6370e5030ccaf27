"""Wording of the simulated product's answers."""
