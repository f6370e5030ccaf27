"""Captions: text-to-image prompts, their pools, and the vocabulary of both."""
