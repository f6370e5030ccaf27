"""Commands about models, readers and weights."""
