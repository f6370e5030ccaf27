"""``medtest train``: what is typed after it, and what it says."""
