"""Task ask: questions about a picture, answered in words."""
