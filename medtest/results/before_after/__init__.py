"""Effects of further training."""
