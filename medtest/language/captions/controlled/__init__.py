"""The parser that needs nothing: the controlled English of the templates, and captions as people write them."""
