"""Algorithms that map images to images or regions: filters, segmenters, and any tool of the user's own."""
