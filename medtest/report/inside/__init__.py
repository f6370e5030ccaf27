"""What a look inside a network adds to a report."""
