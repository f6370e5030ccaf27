"""Near-duplicates among the pictures of a run, and to a training folder."""
