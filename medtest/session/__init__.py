"""One call of medtest: arguments, run and result."""
