"""Curves over scales and their (α,σ): figure, LaTeX, tables, and a section of the page that compares systems."""
