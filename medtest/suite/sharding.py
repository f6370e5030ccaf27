"""``shard=3/16``: one of several equal parts of a plan, for a scheduler that starts a command on each machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_SHARDS = 100_000
SHAPE = f"K/N, as 3/16 for the third of sixteen, with 1 ≤ K ≤ N ≤ {MOST_SHARDS:,}"
"""How a shard is typed."""
_TYPED = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_FOLDER = re.compile(r"([0-9]{1,6})-of-([0-9]{1,6})")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """A part of a plan: every ``of``-th seed of the full plan, whatever of it is chosen or was finished before.

    Neighbouring seeds go to different shards, so that a data set of larger images is shared by all.

    Attributes:
        of: How many shards there are.
        number: Which one, from 1.
    """

    of: int
    number: int

    @classmethod
    def typed(cls, text: str) -> Shard:
        """Return the shard that ``K/N`` means.

        Raises:
            ValueError: It is not of that shape; the message says what is.
        """
        return cls._of(_TYPED.fullmatch(text))

    @classmethod
    def of_folder(cls, name: str) -> Shard:
        """Return the shard that a folder's name means, ``3-of-16``.

        Raises:
            ValueError: It is not of that shape.
        """
        return cls._of(_FOLDER.fullmatch(name))

    @classmethod
    def _of(cls, match: re.Match[str] | None) -> Shard:
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= MOST_SHARDS:
            raise ValueError(SHAPE)
        return cls(of=int(match[2]), number=int(match[1]))

    @property
    def folder(self) -> str:
        """Name of the folder that it is written to."""
        return f"{self.number}-of-{self.of}"

    def holds(self, index: int) -> bool:
        """Whether it holds the seed at a position of the full plan, counted from 0."""
        return index % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
