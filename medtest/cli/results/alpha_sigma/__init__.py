"""``medtest alpha-sigma``: robustness over scales, of anybody's measurements."""
