"""Task classify: labels of a picture."""
