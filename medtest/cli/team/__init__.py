"""What a team shares: MLflow's server, and sending it what it lacks."""
