"""Published figures for comparison."""
