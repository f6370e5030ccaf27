"""Task ask: questions about a picture, with answers in text form."""
