"""What takes a value of each type out of words."""
