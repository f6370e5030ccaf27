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
from medtest.results.fidelity.features import CHUNK, Chosen, Floats, Integers, PictureFeatures, Rows
from medtest.results.fidelity.measures.estimates import GROUPS, Estimate, cluster_numbers

SUBSETS: Final = 100
SUBSET_SIZE: Final = 1000
DRAWN_BY: Final = 2020
"""torch-fidelity's defaults, so that its figure and ours are of the same subsets."""
_GROUPS: Final = 50
_MOST: Final = 5000
"""Pictures of each set that intervals rest on at most: work grows with their square."""


def kernel_distance(
    pictures: PictureFeatures,
    reference: PictureFeatures,
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
        clusters: The cluster of each picture; where clusters are given, pairs of one cluster are left out. None for
            each its own, which is the published estimate.
        reference_clusters: The same of the reference; a name that both have is one cluster.

    Returns:
        The distance; its interval is a jackknife over groups of clusters, of at most 5,000 pictures of each set.
    """
    count = pictures.count
    taken = min(size, count, reference.count)
    if taken < 2:
        return Estimate(value=float("nan"), count=count, warning="fewer than two pictures")
    names = [
        [f"{side}{n}" for n in range(one.count)] if given is None else [str(name) for name in given]
        for side, one, given in (("p", pictures, clusters), ("r", reference, reference_clusters))
    ]
    codes, _ = cluster_numbers(*names)
    plain = clusters is None and reference_clusters is None
    rng = np.random.RandomState(seed)
    found = np.zeros(subsets)
    for number in range(subsets):
        one = rng.choice(count, taken, replace=False).astype(np.int64)
        two = rng.choice(reference.count, taken, replace=False).astype(np.int64)
        rows = pictures.rows(one), reference.rows(two)
        found[number] = _squared_mmd(*rows) if plain else _of_clusters(*rows, codes[0][one], codes[1][two])
        if taken == count == reference.count:  # every subset is the whole
            found[:] = found[number]
            break
    value = float(found.mean())
    low, high = _interval(value, (pictures, reference), codes)
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
        clusters=len(np.unique(codes[0])),
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


def _of_clusters(first: Rows, second: Rows, one: Integers, two: Integers) -> float:
    """Return the same over pairs of pictures of different clusters: those of one cluster are not independent.

    Pictures of one seed are alike in both sets; taken for independent they would put the distance below zero.
    """
    sums, counts = np.zeros(3), np.zeros(3)
    for place, (left, right, a, b) in enumerate(
        ((first, first, one, one), (second, second, two, two), (first, second, one, two))
    ):
        apart = a[:, None] != b[None, :]
        sums[place], counts[place] = _kernel(left, right).astype(np.float64)[apart].sum(), apart.sum()
    if not counts.all():
        return float("nan")
    means = sums / counts
    return float(means[0] + means[1] - 2 * means[2])


def _interval(value: float, sides: Sequence[PictureFeatures], codes: Sequence[Integers]) -> tuple[float, float]:
    """Return the ends of the interval: clusters fall into groups, of which one at a time is left out."""
    kept = [_some(one.count, side) for side, one in enumerate(sides)]
    named = np.unique(np.concatenate([own[rows] for own, rows in zip(codes, kept, strict=True)]), return_inverse=True)
    clusters, numbers = len(named[0]), np.split(named[1].ravel(), [len(kept[0])])
    groups = min(_GROUPS, clusters)
    if groups < 2:
        return float("nan"), float("nan")
    group_of = generator("kernel distance", clusters).permutation(clusters) % groups
    chosen = [Chosen(one, rows) for one, rows in zip(sides, kept, strict=True)]
    without = np.zeros(groups)
    for a, b, sign in ((0, 0, 1.0), (1, 1, 1.0), (0, 1, -2.0)):
        sums, counts = _blocks(chosen[a], chosen[b], numbers[a], numbers[b], group_of)
        left, pairs = (one.sum() - one.sum(0) - one.sum(1) + np.diagonal(one) for one in (sums, counts))
        if pairs.min() < 1:
            return float("nan"), float("nan")
        without += sign * left / pairs
    error = float(np.sqrt((groups - 1) / groups * ((without - without.mean()) ** 2).sum()))
    return value - Z95 * error, value + Z95 * error


def _some(count: int, side: int) -> Integers:
    """Return the numbers of at most :data:`_MOST` rows, in their order."""
    if count <= _MOST:
        return np.arange(count, dtype=np.int64)
    return np.sort(generator("kernel distance", side, count).choice(count, _MOST, replace=False)).astype(np.int64)


def _blocks(
    first: PictureFeatures, second: PictureFeatures, rows: Integers, columns: Integers, group_of: Integers
) -> tuple[Floats, Floats]:
    """Return sums of the kernel over pairs of groups, float64 G×G, and how many pairs of pictures those are.

    Pairs of one cluster, of a picture with itself among them, are in neither.
    """
    groups = int(group_of.max()) + 1
    sums, counts = np.zeros((groups, groups)), np.zeros((groups, groups))
    for a in range(0, first.count, CHUNK):
        left = first.rows(np.arange(a, min(a + CHUNK, first.count)))
        own = rows[a : a + CHUNK]
        one = np.eye(groups)[group_of[own]]
        for b in range(0, second.count, CHUNK):
            right = second.rows(np.arange(b, min(b + CHUNK, second.count)))
            other = columns[b : b + CHUNK]
            two = np.eye(groups)[group_of[other]]
            apart = (own[:, None] != other[None, :]).astype(np.float64)
            sums += one.T @ (_kernel(left, right).astype(np.float64) * apart) @ two
            counts += one.T @ apart @ two
    return sums, counts
