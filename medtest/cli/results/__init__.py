"""Commands on finished runs."""
