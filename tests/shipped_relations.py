"""Effects of the bundled relations on the picture."""

from __future__ import annotations

from functools import cache

from medtest.core.plugins import parts


@cache
def effects_of(name: str) -> frozenset[str]:
    """Return the effects of a bundled relation by the name of its part; none for any other name."""
    relations = parts("relations")
    return relations[name].load().effects or frozenset() if name in relations else frozenset()
