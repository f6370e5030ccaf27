"""Metamorphic relations of prompts: operators on entity-relation pools."""
