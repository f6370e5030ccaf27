"""Near-duplicates among the pictures of a run, and between them and a training folder."""
