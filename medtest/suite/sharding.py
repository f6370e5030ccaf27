"""``shard=3/16``: one of several equal parts of a plan, for a scheduler that starts a command on each machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_SHARDS = 100_000
SHAPE = f"K/N, for example 3/16 for the third of sixteen parts, with 1 ≤ K ≤ N ≤ {MOST_SHARDS:,}"
"""Syntax of a shard."""
_TYPED = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_FOLDER = re.compile(r"([0-9]{1,6})-of-([0-9]{1,6})")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """Part of a plan: every ``of``-th seed of the full plan, regardless of the selection and of finished cases.

    Neighbouring seeds go to different shards, so that a data set of larger images is distributed evenly.

    Attributes:
        of: Number of shards.
        number: Number of this one, from 1.
    """

    of: int
    number: int

    @classmethod
    def typed(cls, text: str) -> Shard:
        """Parse a shard from ``K/N``.

        Raises:
            ValueError: The syntax is wrong; the message explains it.
        """
        return cls._of(_TYPED.fullmatch(text))

    @classmethod
    def of_folder(cls, name: str) -> Shard:
        """Parse a shard from a folder's name, ``3-of-16``.

        Raises:
            ValueError: The syntax is wrong.
        """
        return cls._of(_FOLDER.fullmatch(name))

    @classmethod
    def _of(cls, match: re.Match[str] | None) -> Shard:
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= MOST_SHARDS:
            raise ValueError(SHAPE)
        return cls(of=int(match[2]), number=int(match[1]))

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return f"{self.number}-of-{self.of}"

    def holds(self, index: int) -> bool:
        """Return True if it contains the seed at a position of the full plan, counted from 0."""
        return index % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
