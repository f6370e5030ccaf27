"""Seeds that are prompts: captions, GenEval's prompts, and what is made of drawn pools."""
