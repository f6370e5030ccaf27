"""Values of typed answers."""
