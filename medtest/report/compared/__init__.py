"""Comparison of finished runs: selection, differences and the HTML page."""
