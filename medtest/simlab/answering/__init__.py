"""How the simulated product words its answers."""
