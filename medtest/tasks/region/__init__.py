"""The task region: a region in an image of any dimension."""
