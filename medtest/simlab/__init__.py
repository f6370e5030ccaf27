"""A simulated product for tests of medtest itself: it looks at pixels, answers questions, and errs as it is set to.

It stands for no product that exists. Nothing here knows how medtest types or judges answers (a test holds it): what the
product says and what is read from it meet over HTTP alone.
"""

REVISION = 1
"""Raised whenever the same settings would give other answers."""
