"""The strongest of several attacks, and what it needs."""
