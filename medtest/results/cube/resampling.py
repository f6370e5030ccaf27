"""Cluster draws with replacement, and sums over them: the basis of every bootstrap.

All resampling under one name uses the same draws, so that related figures are comparable and repeated tables are
identical.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

REPLICATES = 2000
"""Number of bootstrap replicates: each end of a 95 % interval then has 50 replicates beyond it."""

_CACHED_WEIGHTS = 100_000_000
"""Number of cached draw counts, one byte each; drawing takes ten times as long as using them."""


def generator(*names: object) -> np.random.Generator:
    """Return a generator seeded by names, so that repeated tables are identical."""
    key = "\x1f".join(["medtest.results", *(str(name) for name in names)])
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big")))


class Resampler:
    """Reproducible draws of clusters with replacement, and sums of their rows.

    Args:
        clusters: Number of clusters.
        name: Seeds the random numbers; use the data set's id.
        replicates: Number of draws.
    """

    def __init__(self, clusters: int, name: str, replicates: int = REPLICATES) -> None:
        self.clusters = clusters
        self.replicates = replicates
        self._name = name
        self._kept: list[NDArray[np.unsignedinteger[Any]]] | None = None

    def sums(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the sums of resampled clusters, identical on every processor.

        Args:
            rows: float32 clusters × K, one row of sums per cluster.

        Returns:
            float32 replicates × K, the exact sums rounded once.
        """
        return self.sums_of_each([rows])[0]

    def sums_of_each(self, blocks: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """Return :meth:`sums` of each block, in one pass over the draws.

        Args:
            blocks: float32 clusters × K each, with any K.
        """
        totals = [np.zeros((self.replicates, rows.shape[1]), np.float32) for rows in blocks]
        if self.clusters == 0:
            return totals
        exact = [_exact(rows, self.clusters) for rows in blocks]
        batches: list[tuple[list[tuple[int, NDArray[np.bool_], slice]], NDArray[Any]]] = []
        for kind in (np.float32, np.float64):
            inside: list[tuple[int, NDArray[np.bool_], slice]] = []
            columns: list[NDArray[Any]] = []
            width = 0
            for number, rows in enumerate(exact):
                if rows.dtype == kind:
                    nonzero = np.asarray(
                        rows.any(axis=0), dtype=np.bool_
                    )  # columns without a case, or without a violation, sum to zero
                    columns.append(rows[:, nonzero])
                    inside.append((number, nonzero, slice(width, width + int(nonzero.sum()))))
                    width += int(nonzero.sum())
            if width:
                batches.append((inside, np.concatenate(columns, axis=1)))
        start = 0
        for weights in self._weights() if batches else ():
            for inside, rows in batches:
                sums = np.matmul(weights.astype(rows.dtype, copy=False), rows).astype(np.float32)
                for number, nonzero, at in inside:
                    totals[number][start : start + len(weights), nonzero] = sums[:, at]
            start += len(weights)
        return totals

    def drawn(self, sums: ArrayLike) -> NDArray[np.float64]:
        """Return replicates × … of clusters × … sums: :meth:`sums` for any shape, in float64."""
        return self.drawn_of_each([sums])[0]

    def drawn_of_each(self, sums: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
        """Return :meth:`drawn` of each, in one pass over the draws."""
        rows = [np.asarray(block, dtype=np.float32) for block in sums]
        totals = self.sums_of_each([block.reshape(len(block), math.prod(block.shape[1:])) for block in rows])
        return [
            total.astype(np.float64).reshape(self.replicates, *block.shape[1:])
            for total, block in zip(totals, rows, strict=True)
        ]

    def weights(self, count: int) -> NDArray[np.float32]:
        """Return the number of draws of each cluster in the first replicates.

        Args:
            count: Number of replicates, at most all.

        Returns:
            float32 count × clusters.
        """
        chunks: list[NDArray[np.float32]] = []
        for chunk in self._weights() if self.clusters else ():
            chunks.append(chunk)
            if sum(len(part) for part in chunks) >= count:
                break
        return np.concatenate([*chunks, np.zeros((0, self.clusters), np.float32)])[:count]

    def _weights(self) -> Iterator[NDArray[np.float32]]:
        if self._kept is not None:
            for chunk in self._kept:
                yield chunk.astype(np.float32)
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
    """Return rows whose sums are exact in every order, because matrix products add in a processor's own order.

    Whole numbers stay float32 if no sum reaches 2^24. Others become float64 multiples of a power of two such that no
    sum exceeds 2^52 of them; scores lose no precision.

    Args:
        rows: float32 of any shape.
        cases: Largest number of rows that are added.
    """
    largest = float(np.abs(rows).max(initial=0.0)) * cases
    if largest < 2**24 and np.array_equal(rows, np.rint(rows)):
        return rows
    bits = 52 - math.frexp(largest)[1]
    return np.ldexp(np.rint(np.ldexp(rows.astype(np.float64), bits)), -bits)


def sums_by_cluster(rows: NDArray[np.float64], clusters: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return the sums of each cluster's rows, followed by the number of rows, count × (m + 1).

    Args:
        rows: N × m.
        clusters: Index of each row's cluster.
        count: Number of clusters.
    """
    sums = np.zeros((count, rows.shape[1] + 1))
    np.add.at(sums[:, :-1], clusters, rows)
    sums[:, -1] = np.bincount(clusters, minlength=count)
    return sums


def clusters_within(
    dataset: NDArray[np.int64], names: Sequence[str], clusters: ArrayLike
) -> tuple[NDArray[np.int64], tuple[Resampler, ...]]:
    """Return the index of each case's cluster within its data set, and a resampler for each data set.

    Args:
        dataset: int64 N; index of each case's data set.
        names: Names of the data sets.
        clusters: Cluster of each case, a name or a number; all of one type.
    """
    values, numbers = np.asarray(clusters), np.zeros(len(dataset), np.int64)
    resamplers = []
    for index, name in enumerate(names):
        inside = dataset == index
        numbers[inside], count = group_numbers(values[inside])
        resamplers.append(Resampler(count, name))
    return numbers, tuple(resamplers)


def group_numbers(values: ArrayLike) -> tuple[NDArray[np.int64], int]:
    """Return the index of each value among the sorted distinct values, and the number of distinct values.

    Args:
        values: Names or numbers of any shape, in row order; all of one type.

    Returns:
        int64 of shape (number of values,), in [0, groups), and the number of groups.
    """
    unique, codes = np.unique(np.asarray(values), return_inverse=True)
    return codes.astype(np.int64).ravel(), int(unique.size)
