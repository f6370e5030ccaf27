"""What the simulated product sees in a picture."""
