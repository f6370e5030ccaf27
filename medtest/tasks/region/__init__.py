"""Task region: a region in an image of any dimension."""
