"""Pictures that are nearly the same: answers to different prompts among themselves, or answers and training pictures.

A picture has a perceptual hash of 256 bits (:mod:`medtest.readers.embeddings.hashes`). Two whose hashes differ in few
bits are compared by a second measure, features of a network; where both agree they are near-duplicates. Hashes that
differ in at most 15 bits share one of 16 bands of 16 bits, so that no picture is compared with every other, and nothing
but hashes is in memory.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from medtest.readers.embeddings.hashes import BITS
from medtest.results.fidelity.features import PictureFeatures

MOST_BITS: Final = 15
"""Hashes of near-duplicates differ in so many bits at most: one less than there are bands."""
_BANDS: Final = 16
_LOOKED_AT: Final = 64
"""So many of the nearest are compared by the second measure: pictures without any structure share one hash."""

Alike = Callable[[int, int], float]
"""How alike two pictures are by a second measure, 1 for the same: numbers of both in."""


@dataclass(frozen=True, slots=True)
class Near:
    """A picture that is nearly the same as another.

    Attributes:
        number: Number of the other.
        bits: How many of 256 bits of their hashes differ.
        similarity: How alike they are by the second measure, 1 for the same; NaN without one.
    """

    number: int
    bits: int
    similarity: float


class HashIndex:
    """Hashes that others are looked up in.

    Args:
        most: Bits that may differ.

    Raises:
        ValueError: They are more than :data:`MOST_BITS`.
    """

    def __init__(self, most: int = MOST_BITS) -> None:
        if not 0 <= most <= MOST_BITS:
            raise ValueError(f"{most} bits: at most {MOST_BITS} of {BITS} may differ")
        self._most = most
        self._hashes: dict[int, int] = {}
        self._bands: dict[tuple[int, bytes], list[int]] = defaultdict(list)

    def add(self, number: int, content: bytes) -> None:
        """Take the hash of a picture in."""
        self._hashes[number] = int.from_bytes(content, "big")
        for key in _keys(content):
            self._bands[key].append(number)

    def near(self, content: bytes) -> list[tuple[int, int]]:
        """Return pictures whose hashes differ in few bits, and in how many: the nearest :data:`_LOOKED_AT` at most."""
        own = int.from_bytes(content, "big")
        bits: dict[int, int] = {}
        for key in _keys(content):
            for number in self._bands.get(key, ()):
                if number not in bits:
                    bits[number] = (own ^ self._hashes[number]).bit_count()
        near = [(count, number) for number, count in bits.items() if count <= self._most]
        return [(number, count) for count, number in heapq.nsmallest(_LOOKED_AT, near)]


def _keys(content: bytes) -> Iterator[tuple[int, bytes]]:
    return ((band, content[2 * band : 2 * band + 2]) for band in range(_BANDS))


def representatives(hashes: Sequence[bytes], alike: Alike | None, least: float) -> list[Near]:
    """Return for each of N different pictures the first one that it is nearly the same as, itself where there is none.

    A picture that is near no representative becomes one. What is near another picture of a group and not its
    representative is so a group of its own: groups do not grow along chains of small steps.

    Args:
        hashes: 32 bytes each.
        alike: The second measure; None for the hash alone.
        least: How alike two of a group are at least.
    """
    index = HashIndex()
    found: list[Near] = []
    for number, content in enumerate(hashes):
        nearest = nearest_of(index, number, content, alike, least)
        if nearest is None:
            index.add(number, content)
        found.append(nearest or Near(number, 0, 1.0))
    return found


def nearest_of(index: HashIndex, number: int, content: bytes, alike: Alike | None, least: float) -> Near | None:
    """Return the nearest picture of an index that both measures call nearly the same.

    Args:
        index: Where it is looked up.
        number: The picture, as ``alike`` knows it.
        content: Its hash.
        alike: The second measure; None for the hash alone.
        least: How alike the two are at least.
    """
    for other, bits in index.near(content):
        similarity = float("nan") if alike is None else alike(other, number)
        if alike is None or similarity >= least:
            return Near(other, bits, similarity)
    return None


def cosine_of(features: PictureFeatures, others: PictureFeatures | None = None) -> Alike:
    """Return the second measure by features: the cosine between two rows, of two sets where two are given."""

    def alike(first: int, second: int) -> float:
        one = features.rows(np.array([first]))[0].astype(np.float64)
        two = (others or features).rows(np.array([second]))[0].astype(np.float64)
        lengths = float(np.linalg.norm(one) * np.linalg.norm(two))
        return float(one @ two) / lengths if lengths > 0 else float(np.array_equal(one, two))

    return alike
