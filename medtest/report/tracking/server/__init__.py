"""MLflow server for a team: on PostgreSQL, with passwords, from installed parts."""
