"""Search for the mildest or the worst failing follow-up of a relation."""
