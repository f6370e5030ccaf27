"""The task classify: labels of a picture."""
