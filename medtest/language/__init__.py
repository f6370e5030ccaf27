"""Words: captions, vocabularies, questions and typed answers."""
