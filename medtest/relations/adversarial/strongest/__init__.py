"""The strongest of several attacks, and its parts."""
