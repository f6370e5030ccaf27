"""Images with questions from files."""
