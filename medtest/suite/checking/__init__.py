"""Checks of a composed suite before anything loads."""
