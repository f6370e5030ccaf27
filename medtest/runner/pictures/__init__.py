"""Which cases a person would look at, and how they are drawn."""
