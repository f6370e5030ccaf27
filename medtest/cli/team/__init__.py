"""Commands for teams: MLflow's server, and sending results to it."""
