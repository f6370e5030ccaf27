"""Commands for models, readers and weights."""
