"""Report on pictures generated from prompts."""
