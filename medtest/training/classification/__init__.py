"""Training of classification networks: losses, recipes, data."""
