"""A simulated product for tests of medtest itself: it looks at pixels, answers questions, and has configurable defects.

It represents no existing product. Nothing here knows how medtest types or judges answers (enforced by a test); the
product's answers and medtest's readings of them meet only over HTTP.
"""

REVISION = 1
"""Incremented whenever the same settings would give other answers."""
