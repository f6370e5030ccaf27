"""Captions: the words of a text-to-image prompt, the pool that they say, and the vocabulary of both."""
