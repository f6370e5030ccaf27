"""What the relations that ship say they do to the picture."""

from __future__ import annotations

from functools import cache

from medtest.core.plugins import parts


@cache
def effects_of(name: str) -> frozenset[str]:
    """Return the effects of a bundled relation by the name of its part, none for a name that is none."""
    there = parts("relations")
    return there[name].load().effects or frozenset() if name in there else frozenset()
