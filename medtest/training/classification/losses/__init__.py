"""Losses of the published classifiers."""
