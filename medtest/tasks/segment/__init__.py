"""Task segment: a mask of a picture."""
