"""Commands on prompts: review, export to be drawn elsewhere, import of the pictures, GenEval's layout."""
