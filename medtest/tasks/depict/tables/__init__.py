"""Tables of pictures that are drawn from prompts."""
