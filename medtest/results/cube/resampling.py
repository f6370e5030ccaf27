"""Draws of clusters with replacement, and their sums: what every bootstrap of the tables rests on.

The same clusters are drawn for all that is resampled under one name, so that figures side by side are of the same
draws, and tables made twice agree to the last digit.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

REPLICATES = 2000
"""Bootstrap replicates: the ends of a 95 % interval then rest on 50 replicates each."""

_CACHED_WEIGHTS = 100_000_000
"""Counts of a resampler that are kept, a byte each: drawing them takes ten times as long as what is done with them."""


def generator(*names: object) -> np.random.Generator:
    """Return a generator fixed by names, so that tables made twice agree to the last digit."""
    key = "\x1f".join(["medtest.results", *(str(name) for name in names)])
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big")))


class Resampler:
    """Draws clusters with replacement, again and again the same ones, and sums their rows.

    Args:
        clusters: How many clusters there are.
        name: Fixes the random numbers; use the data set's id.
        replicates: How many draws.
    """

    def __init__(self, clusters: int, name: str, replicates: int = REPLICATES) -> None:
        self.clusters = clusters
        self.replicates = replicates
        self._name = name
        self._kept: list[NDArray[np.unsignedinteger[Any]]] | None = None

    def sums(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the sums of resampled clusters, alike on every processor.

        Args:
            rows: float32 clusters × K, one row of sums per cluster.

        Returns:
            float32 replicates × K, the exact sums rounded once.
        """
        return self.sums_of_each([rows])[0]

    def sums_of_each(self, blocks: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """Return what :meth:`sums` gives of each block, in one pass over the draws.

        Args:
            blocks: float32 clusters × K each, of any K.
        """
        found = [np.zeros((self.replicates, rows.shape[1]), np.float32) for rows in blocks]
        if self.clusters == 0:
            return found
        exact = [_exact(rows, self.clusters) for rows in blocks]
        batches: list[tuple[list[tuple[int, NDArray[np.bool_], slice]], NDArray[Any]]] = []
        for kind in (np.float32, np.float64):
            inside: list[tuple[int, NDArray[np.bool_], slice]] = []
            columns: list[NDArray[Any]] = []
            width = 0
            for number, rows in enumerate(exact):
                if rows.dtype == kind:
                    some = np.asarray(
                        rows.any(axis=0), dtype=np.bool_
                    )  # cells without a case, and without a violation, sum to nothing
                    columns.append(rows[:, some])
                    inside.append((number, some, slice(width, width + int(some.sum()))))
                    width += int(some.sum())
            if width:
                batches.append((inside, np.concatenate(columns, axis=1)))
        start = 0
        for weights in self._weights() if batches else ():
            for inside, rows in batches:
                sums = np.matmul(weights.astype(rows.dtype, copy=False), rows).astype(np.float32)
                for number, some, at in inside:
                    found[number][start : start + len(weights), some] = sums[:, at]
            start += len(weights)
        return found

    def drawn(self, sums: ArrayLike) -> NDArray[np.float64]:
        """Return replicates × … of clusters × … sums: :meth:`sums` of any shape, in float64."""
        return self.drawn_of_each([sums])[0]

    def drawn_of_each(self, sums: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
        """Return what :meth:`drawn` gives of each, in one pass over the draws."""
        rows = [np.asarray(one, dtype=np.float32) for one in sums]
        found = self.sums_of_each([one.reshape(len(one), math.prod(one.shape[1:])) for one in rows])
        return [
            made.astype(np.float64).reshape(self.replicates, *one.shape[1:])
            for made, one in zip(found, rows, strict=True)
        ]

    def weights(self, count: int) -> NDArray[np.float32]:
        """Return how often each cluster is drawn in the first replicates.

        Args:
            count: How many replicates, at most all.

        Returns:
            float32 count × clusters.
        """
        found: list[NDArray[np.float32]] = []
        for chunk in self._weights() if self.clusters else ():
            found.append(chunk)
            if sum(len(one) for one in found) >= count:
                break
        return np.concatenate([*found, np.zeros((0, self.clusters), np.float32)])[:count]

    def _weights(self) -> Iterator[NDArray[np.float32]]:
        if self._kept is not None:
            for kept in self._kept:
                yield kept.astype(np.float32)
            return
        keep: list[NDArray[np.unsignedinteger[Any]]] | None = (
            [] if self.clusters * self.replicates <= _CACHED_WEIGHTS else None
        )
        rng = generator("clusters", self._name, self.clusters)
        step = max(1, min(self.replicates, 2_000_000 // self.clusters))
        for start in range(0, self.replicates, step):
            count = min(step, self.replicates - start)
            drawn = rng.integers(self.clusters, size=(count, self.clusters))
            drawn += np.arange(count)[:, None] * self.clusters
            counts = np.bincount(drawn.ravel(), minlength=count * self.clusters).reshape(count, self.clusters)
            if keep is not None:
                keep.append(counts.astype(np.uint8 if counts.max() < 256 else np.uint32))
            yield counts.astype(np.float32)
        self._kept = keep


def _exact(rows: NDArray[np.float32], cases: int) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return rows whose sums are exact in every order, for a product of matrices adds in the processor's own.

    Whole numbers stay float32 where no sum reaches 2^24. Others become float64 multiples of a power of two, of which no
    sum holds more than 2^52: scores lose nothing by it.

    Args:
        rows: float32 of any shape.
        cases: How many of them are added at most.
    """
    largest = float(np.abs(rows).max(initial=0.0)) * cases
    if largest < 2**24 and np.array_equal(rows, np.rint(rows)):
        return rows
    bits = 52 - math.frexp(largest)[1]
    return np.ldexp(np.rint(np.ldexp(rows.astype(np.float64), bits)), -bits)


def sums_by_cluster(rows: NDArray[np.float64], clusters: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return the sums of each cluster's rows with their number behind, count × (m + 1).

    Args:
        rows: N × m.
        clusters: Number of each row's cluster.
        count: How many clusters there are.
    """
    sums = np.zeros((count, rows.shape[1] + 1))
    np.add.at(sums[:, :-1], clusters, rows)
    sums[:, -1] = np.bincount(clusters, minlength=count)
    return sums


def group_numbers(values: ArrayLike) -> tuple[NDArray[np.int64], int]:
    """Return each value's number from 0 without gaps (in sorted order), and how many there are.

    Args:
        values: Names or numbers of any shape, taken row by row; all of one sort.

    Returns:
        int64 of shape (number of values,), in [0, groups), and the number of groups.
    """
    unique, codes = np.unique(np.asarray(values), return_inverse=True)
    return codes.astype(np.int64).ravel(), int(unique.size)
