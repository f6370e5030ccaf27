"""``medtest alpha-sigma``: robustness over scales of any measurements."""
