"""Runs in MLflow: parent and child runs with their metrics, tags and tables."""
