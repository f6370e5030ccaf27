"""Puts this folder on the path: its modules build files for tests of all kinds of seeds."""
