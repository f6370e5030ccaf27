"""A run in MLflow: parent and child runs, their metrics, tags and tables."""
