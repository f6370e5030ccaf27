"""Kernel distance between two sets of features (M. Bińkowski et al., Demystifying MMD GANs, ICLR 2018).

It is KID only if the features are those of Inception-v3. Unlike FID it is unbiased and therefore preferable for few
pictures; it may be slightly negative.
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
"""Defaults of torch-fidelity, so that both use the same subsets."""
_GROUPS: Final = 50
_MOST: Final = 5000
"""Largest number of pictures of each set used for intervals, since the cost is quadratic."""


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

    Products use the dtype of the features, as in torch-fidelity: with float32 rows the last digits of a distance near
    zero are rounding, far below its interval.

    Args:
        pictures: Features of the generated pictures.
        reference: Features of the reference pictures.
        subsets: Number of subsets, drawn without replacement within one.
        size: Pictures in a subset; fewer if a set has fewer.
        seed: Seed of the draws.
        clusters: The cluster of each picture; pairs within a cluster are left out. None if each is its own, which is
            the
            published estimate.
        reference_clusters: The same for the reference; a name in both is one cluster.

    Returns:
        The distance; its interval is a jackknife over groups of clusters, of at most 5,000 pictures of each set.
    """
    count = pictures.count
    subset_size = min(size, count, reference.count)
    if subset_size < 2:
        return Estimate(value=float("nan"), count=count, warning="fewer than two pictures")
    names = [
        [f"{side}{n}" for n in range(features.count)] if labels is None else [str(name) for name in labels]
        for side, features, labels in (("p", pictures, clusters), ("r", reference, reference_clusters))
    ]
    codes, _ = cluster_numbers(*names)
    plain = clusters is None and reference_clusters is None
    rng = np.random.RandomState(seed)
    distances = np.zeros(subsets)
    for number in range(subsets):
        one = rng.choice(count, subset_size, replace=False).astype(np.int64)
        two = rng.choice(reference.count, subset_size, replace=False).astype(np.int64)
        rows = pictures.rows(one), reference.rows(two)
        distances[number] = _squared_mmd(*rows) if plain else _of_clusters(*rows, codes[0][one], codes[1][two])
        if subset_size == count == reference.count:  # every subset is the full set
            distances[:] = distances[number]
            break
    value = float(distances.mean())
    low, high = _interval(value, (pictures, reference), codes)
    warning = ""
    if subset_size < size:
        warning = f"subsets of {subset_size:,} pictures instead of {size:,}: compare only with such figures"
    return Estimate(
        value=value,
        low=low,
        high=high,
        method=GROUPS if low == low else "",
        spread=float(distances.std()),
        count=count,
        clusters=len(np.unique(codes[0])),
        warning=warning,
    )


def _kernel(first: Rows, second: Rows) -> Rows:
    scale = 1.0 / first.shape[1]
    values: Rows = (np.matmul(first, second.T) * scale + 1) ** 3
    return values


def _squared_mmd(first: Rows, second: Rows) -> float:
    """Return the unbiased estimate of two sets of equal size m (A. Gretton et al., JMLR 13, 2012, equation 3)."""
    size = len(first)
    within = [_kernel(rows, rows) for rows in (first, second)]
    sums = [(values.sum(axis=1) - np.diagonal(values)).sum() for values in within]
    across = _kernel(first, second).sum(axis=0).sum()
    return float((sums[0] + sums[1]) / (size * (size - 1)) - 2 * across / (size * size))


def _of_clusters(first: Rows, second: Rows, first_codes: Integers, second_codes: Integers) -> float:
    """Return the estimate over pairs of pictures of different clusters, since pictures of one are not independent.

    Pictures of one seed are alike in both sets; treating them as independent would make the distance negative.
    """
    sums, counts = np.zeros(3), np.zeros(3)
    for place, (left, right, a, b) in enumerate(
        (
            (first, first, first_codes, first_codes),
            (second, second, second_codes, second_codes),
            (first, second, first_codes, second_codes),
        )
    ):
        different = a[:, None] != b[None, :]
        sums[place], counts[place] = _kernel(left, right).astype(np.float64)[different].sum(), different.sum()
    if not counts.all():
        return float("nan")
    means = sums / counts
    return float(means[0] + means[1] - 2 * means[2])


def _interval(value: float, sides: Sequence[PictureFeatures], codes: Sequence[Integers]) -> tuple[float, float]:
    """Return the ends of the interval by leaving out one group of clusters at a time."""
    subsets = [_some(features.count, side) for side, features in enumerate(sides)]
    named = np.unique(
        np.concatenate([side_codes[rows] for side_codes, rows in zip(codes, subsets, strict=True)]), return_inverse=True
    )
    clusters, numbers = len(named[0]), np.split(named[1].ravel(), [len(subsets[0])])
    groups = min(_GROUPS, clusters)
    if groups < 2:
        return float("nan"), float("nan")
    group_of = generator("kernel distance", clusters).permutation(clusters) % groups
    selected = [Chosen(features, rows) for features, rows in zip(sides, subsets, strict=True)]
    without = np.zeros(groups)
    for a, b, sign in ((0, 0, 1.0), (1, 1, 1.0), (0, 1, -2.0)):
        sums, counts = _blocks(selected[a], selected[b], numbers[a], numbers[b], group_of)
        kept_sums, pairs = (block.sum() - block.sum(0) - block.sum(1) + np.diagonal(block) for block in (sums, counts))
        if pairs.min() < 1:
            return float("nan"), float("nan")
        without += sign * kept_sums / pairs
    error = float(np.sqrt((groups - 1) / groups * ((without - without.mean()) ** 2).sum()))
    return value - Z95 * error, value + Z95 * error


def _some(count: int, side: int) -> Integers:
    """Return the indices of at most :data:`_MOST` rows, in order."""
    if count <= _MOST:
        return np.arange(count, dtype=np.int64)
    return np.sort(generator("kernel distance", side, count).choice(count, _MOST, replace=False)).astype(np.int64)


def _blocks(
    first: PictureFeatures, second: PictureFeatures, rows: Integers, columns: Integers, group_of: Integers
) -> tuple[Floats, Floats]:
    """Return sums of the kernel over pairs of groups, float64 G×G, and the number of picture pairs.

    Pairs within a cluster, including a picture with itself, are in neither.
    """
    groups = int(group_of.max()) + 1
    sums, counts = np.zeros((groups, groups)), np.zeros((groups, groups))
    for a in range(0, first.count, CHUNK):
        first_rows = first.rows(np.arange(a, min(a + CHUNK, first.count)))
        row_clusters = rows[a : a + CHUNK]
        row_groups = np.eye(groups)[group_of[row_clusters]]
        for b in range(0, second.count, CHUNK):
            right = second.rows(np.arange(b, min(b + CHUNK, second.count)))
            column_clusters = columns[b : b + CHUNK]
            two = np.eye(groups)[group_of[column_clusters]]
            different = (row_clusters[:, None] != column_clusters[None, :]).astype(np.float64)
            sums += row_groups.T @ (_kernel(first_rows, right).astype(np.float64) * different) @ two
            counts += row_groups.T @ different @ two
    return sums, counts
