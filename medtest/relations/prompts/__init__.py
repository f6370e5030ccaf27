"""Metamorphic relations for prompts: operators on entity-relation pools."""
