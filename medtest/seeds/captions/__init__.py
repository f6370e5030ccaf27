"""Seeds that are prompts: captions, GenEval's prompts and prompts generated from drawn pools."""
