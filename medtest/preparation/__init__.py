"""preparation."""
