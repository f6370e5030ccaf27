"""Commands on models, readers and weights."""
