"""What the report says of pictures that are drawn from prompts."""
