"""The task segment: a mask of a picture."""
