"""GenEval's rule for single pictures, its table by tag, and an export in GenEval's own layout."""
