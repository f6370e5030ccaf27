"""YAML → checked suite → plan of cases. Nothing here loads a model or an image."""
