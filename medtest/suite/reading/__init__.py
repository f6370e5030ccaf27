"""Reading of suite files: YAML to plain data, checked for safety."""
