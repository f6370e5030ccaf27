"""Search for near-duplicate pictures: answers to different prompts, or answers and training pictures.

A picture has a perceptual hash of 256 bits (:mod:`medtest.readers.embeddings.hashes`). Two pictures whose hashes differ
in few bits are compared by a second measure, the features of a network; if both agree, they are near-duplicates. Hashes
that differ in at most 15 bits share one of 16 bands of 16 bits, so pictures need not be compared pairwise and only
hashes are held in memory.
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
"""Largest number of bits in which hashes of near-duplicates differ: one less than the number of bands."""
_BANDS: Final = 16
_LOOKED_AT: Final = 64
"""Number of nearest pictures compared by the second measure: pictures without structure share one hash."""

Alike = Callable[[int, int], float]
"""Second measure of similarity, called with the indices of two pictures; 1 if they are equal."""


@dataclass(frozen=True, slots=True)
class Near:
    """Near-duplicate of a picture.

    Attributes:
        number: Index of the other picture.
        bits: Number of the 256 hash bits that differ.
        similarity: Similarity by the second measure, 1 if equal; NaN without one.
    """

    number: int
    bits: int
    similarity: float


class HashIndex:
    """Index of hashes for near-duplicate search.

    Args:
        most: Largest number of bits that may differ.

    Raises:
        ValueError: ``most`` exceeds :data:`MOST_BITS`.
    """

    def __init__(self, most: int = MOST_BITS) -> None:
        if not 0 <= most <= MOST_BITS:
            raise ValueError(f"{most} bits: at most {MOST_BITS} of {BITS} may differ")
        self._most = most
        self._hashes: dict[int, int] = {}
        self._bands: dict[tuple[int, bytes], list[int]] = defaultdict(list)

    def add(self, number: int, content: bytes) -> None:
        """Add the hash of a picture."""
        self._hashes[number] = int.from_bytes(content, "big")
        for key in _keys(content):
            self._bands[key].append(number)

    def near(self, content: bytes) -> list[tuple[int, int]]:
        """Return pictures with similar hashes and the number of differing bits, at most :data:`_LOOKED_AT`."""
        value = int.from_bytes(content, "big")
        bits: dict[int, int] = {}
        for key in _keys(content):
            for number in self._bands.get(key, ()):
                if number not in bits:
                    bits[number] = (value ^ self._hashes[number]).bit_count()
        near = [(count, number) for number, count in bits.items() if count <= self._most]
        return [(number, count) for count, number in heapq.nsmallest(_LOOKED_AT, near)]


def _keys(content: bytes) -> Iterator[tuple[int, bytes]]:
    return ((band, content[2 * band : 2 * band + 2]) for band in range(_BANDS))


def representatives(hashes: Sequence[bytes], alike: Alike | None, least: float) -> list[Near]:
    """Return for each of N distinct pictures the first one it nearly duplicates, or itself.

    A picture that is not close to a representative becomes one. A picture close to another member of a group but not to
    its representative therefore starts a group, so groups do not grow along chains of small differences.

    Args:
        hashes: 32 bytes each.
        alike: Second measure; None to use hashes only.
        least: Smallest similarity within a group.
    """
    index = HashIndex()
    nearest_pictures: list[Near] = []
    for number, content in enumerate(hashes):
        nearest = nearest_of(index, number, content, alike, least)
        if nearest is None:
            index.add(number, content)
        nearest_pictures.append(nearest or Near(number, 0, 1.0))
    return nearest_pictures


def nearest_of(index: HashIndex, number: int, content: bytes, alike: Alike | None, least: float) -> Near | None:
    """Return the nearest picture of an index that is a near-duplicate by both measures.

    Args:
        index: Index to search.
        number: Index of the picture, as passed to ``alike``.
        content: Hash of the picture.
        alike: Second measure; None to use hashes only.
        least: Smallest similarity.
    """
    for candidate, bits in index.near(content):
        similarity = float("nan") if alike is None else alike(candidate, number)
        if alike is None or similarity >= least:
            return Near(candidate, bits, similarity)
    return None


def cosine_of(features: PictureFeatures, others: PictureFeatures | None = None) -> Alike:
    """Return the second measure by features: the cosine between two rows, of two sets if both are passed."""

    def alike(first: int, second: int) -> float:
        row = features.rows(np.array([first]))[0].astype(np.float64)
        two = (others or features).rows(np.array([second]))[0].astype(np.float64)
        lengths = float(np.linalg.norm(row) * np.linalg.norm(two))
        return float(row @ two) / lengths if lengths > 0 else float(np.array_equal(row, two))

    return alike
