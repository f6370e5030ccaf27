"""How the classification networks are trained: losses, recipes, data."""
