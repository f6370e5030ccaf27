"""Keys that a command takes beside those of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from medtest.errors import Mistake, UserMistakes, nearest_name


@contextmanager
def own_keys(*keys: str) -> Iterator[None]:
    """Let what is told of a mistyped key propose the command's own keys too, which the suite's check does not know."""
    try:
        yield
    except UserMistakes as error:
        told = [one if one.key in keys else _proposing(one, keys) for one in error.mistakes]
        raise UserMistakes(told, heading=error.heading) from error


def _proposing(mistake: Mistake, keys: Sequence[str]) -> Mistake:
    """Propose the command's own keys too where a key is not known; what is wrong with a known key's value stays."""
    if mistake.found != f"the key {mistake.key}":
        return mistake
    named = [mistake.nearest] if mistake.nearest else []
    allowed = ", ".join(sorted({*keys, *mistake.allowed.split(", ")}))
    return replace(mistake, allowed=allowed, nearest=nearest_name(mistake.key, [*named, *keys]) or mistake.nearest)
