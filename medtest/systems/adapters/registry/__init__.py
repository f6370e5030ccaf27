"""MLflow registry models: version lookup, local files, and the model as a system."""
