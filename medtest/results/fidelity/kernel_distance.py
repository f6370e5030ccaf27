"""Kernel distance between two sets of features (M. Bińkowski et al., Demystifying MMD GANs, ICLR 2018).

It is KID where the features are those of Inception-v3, and nowhere else. Unlike FID it has no bias, so that it is the
one to read where pictures are few: it may be a little below zero.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from medtest.results.cube.intervals import Z95
from medtest.results.cube.resampling import generator
from medtest.results.fidelity.estimates import GROUPS, Estimate, cluster_numbers
from medtest.results.fidelity.features import CHUNK, Chosen, Features, Floats, Integers, Rows

SUBSETS: Final = 100
SUBSET_SIZE: Final = 1000
DRAWN_BY: Final = 2020
"""torch-fidelity's defaults, so that its figure and ours are of the same subsets."""
_GROUPS: Final = 50
_MOST: Final = 5000
"""Pictures of each set that intervals rest on at most: work grows with their square."""


def kernel_distance(
    pictures: Features,
    reference: Features,
    *,
    subsets: int = SUBSETS,
    size: int = SUBSET_SIZE,
    seed: int = DRAWN_BY,
    clusters: Sequence[Hashable] | None = None,
    reference_clusters: Sequence[Hashable] | None = None,
) -> Estimate:
    """Return the mean over subsets of the unbiased squared MMD under the kernel (x·y/D + 1)³.

    Products are taken in the dtype of the features, as torch-fidelity takes them: of float32 rows the last digits of a
    distance near zero are rounding, far below its interval.

    Args:
        pictures: Features of what was drawn.
        reference: Features of what it is compared with.
        subsets: How many subsets are drawn, without replacement within one.
        size: Pictures of a subset; fewer where a set holds fewer.
        seed: Of the draws.
        clusters: The cluster of each picture; None for each its own.
        reference_clusters: The same of the reference; a name that both have is one cluster.

    Returns:
        The distance; its interval is a jackknife over groups of clusters, of at most 5,000 pictures of each set.
    """
    count = pictures.count
    taken = min(size, count, reference.count)
    if taken < 2:
        return Estimate(value=float("nan"), count=count, warning="fewer than two pictures")
    rng = np.random.RandomState(seed)  # noqa: NPY002 - torch-fidelity's generator
    found = np.zeros(subsets)
    for number in range(subsets):
        first = pictures.rows(rng.choice(count, taken, replace=False).astype(np.int64))
        second = reference.rows(rng.choice(reference.count, taken, replace=False).astype(np.int64))
        found[number] = _squared_mmd(first, second)
        if taken == count == reference.count:  # every subset is the whole
            found[:] = found[number]
            break
    names = [
        [f"{side}{n}" for n in range(one.count)] if given is None else [str(name) for name in given]
        for side, one, given in (("p", pictures, clusters), ("r", reference, reference_clusters))
    ]
    value = float(found.mean())
    low, high = _interval(value, (pictures, reference), names)
    warning = ""
    if taken < size:
        warning = f"subsets of {taken:,} pictures, not of {size:,}: compare with such alone"
    return Estimate(
        value=value,
        low=low,
        high=high,
        method=GROUPS if low == low else "",
        spread=float(found.std()),
        count=count,
        clusters=len(set(names[0])),
        warning=warning,
    )


def _kernel(first: Rows, second: Rows) -> Rows:
    scale = 1.0 / first.shape[1]
    found: Rows = (np.matmul(first, second.T) * scale + 1) ** 3
    return found


def _squared_mmd(first: Rows, second: Rows) -> float:
    """Return the unbiased estimate of two sets of one size m (A. Gretton et al., JMLR 13, 2012, equation 3)."""
    size = len(first)
    within = [_kernel(rows, rows) for rows in (first, second)]
    sums = [(one.sum(axis=1) - np.diagonal(one)).sum() for one in within]
    across = _kernel(first, second).sum(axis=0).sum()
    return float((sums[0] + sums[1]) / (size * (size - 1)) - 2 * across / (size * size))


def _interval(value: float, sides: Sequence[Features], names: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Return the ends of the interval: clusters fall into groups, of which one at a time is left out."""
    kept = [_some(one.count, side) for side, one in enumerate(sides)]
    codes, clusters = cluster_numbers(*[[own[n] for n in rows] for own, rows in zip(names, kept, strict=True)])
    groups = min(_GROUPS, clusters)
    if groups < 2:
        return float("nan"), float("nan")
    group_of = generator("kernel distance", clusters).permutation(clusters) % groups
    numbers = [group_of[one] for one in codes]
    chosen = [Chosen(one, rows) for one, rows in zip(sides, kept, strict=True)]
    sizes = [np.bincount(one, minlength=groups) for one in numbers]
    blocks = [
        _blocks(chosen[a], chosen[b], numbers[a], numbers[b], groups, same=a == b) for a, b in ((0, 0), (1, 1), (0, 1))
    ]
    left = [one.sum() - one.sum(0) - one.sum(1) + np.diagonal(one) for one in blocks]
    n, m = (size.sum() - size for size in sizes)
    if min(n.min(), m.min()) < 2:
        return float("nan"), float("nan")
    without = left[0] / (n * (n - 1)) + left[1] / (m * (m - 1)) - 2 * left[2] / (n * m)
    error = float(np.sqrt((groups - 1) / groups * ((without - without.mean()) ** 2).sum()))
    return value - Z95 * error, value + Z95 * error


def _some(count: int, side: int) -> Integers:
    """Return the numbers of at most :data:`_MOST` rows, in their order."""
    if count <= _MOST:
        return np.arange(count, dtype=np.int64)
    return np.sort(generator("kernel distance", side, count).choice(count, _MOST, replace=False)).astype(np.int64)


def _blocks(first: Features, second: Features, rows: Integers, columns: Integers, groups: int, *, same: bool) -> Floats:
    """Return sums of the kernel over pairs of groups, float64 G×G; of one set without pairs of a row with itself."""
    found = np.zeros((groups, groups))
    for a in range(0, first.count, CHUNK):
        left = first.rows(np.arange(a, min(a + CHUNK, first.count)))
        own = np.eye(groups)[rows[a : a + CHUNK]]
        for b in range(0, second.count, CHUNK):
            right = second.rows(np.arange(b, min(b + CHUNK, second.count)))
            kernel = _kernel(left, right).astype(np.float64)
            if same and a == b:
                np.fill_diagonal(kernel, 0.0)
            found += own.T @ kernel @ np.eye(groups)[columns[b : b + CHUNK]]
    return found
