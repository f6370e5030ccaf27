"""Commands on prompts: export to be drawn elsewhere, import of the pictures, GenEval's layout."""
