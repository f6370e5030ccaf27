"""Tables of pictures generated from prompts."""
