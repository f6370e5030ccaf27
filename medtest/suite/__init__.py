"""From YAML to a checked suite to a plan of cases, without loading a model or an image."""
