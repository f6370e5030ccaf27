"""Language: captions, vocabularies, questions and typed answers."""
