"""What paired cases can show: the smallest difference, and how many pairs a margin needs, also in clusters.

R. J. Connor, Biometrics 43, 1987: with discordant share ψ and difference δ the power of McNemar's test is that of a
normal with mean δ√n, against 1.96 √ψ, with variance ψ - δ². Where nothing differs, the upper end of a 95 % interval of
the difference lies below a margin m with the chance that a normal with deviation √(ψ/n) lies below m - 1.96 √(ψ/n)
(J. Liu et al., Statistics in Medicine 21, 2002, for δ = 0).

Where runs differ in fewer than ten clusters their tables count each cluster as one case
(:data:`medtest.results.cube.intervals.FEW_CLUSTERS`), and so does what is promised of them here.

Pairs of one cluster (severities, frames, images of a patient) say less than as many of different ones: n pairs, m in a
cluster, that correlate by ρ, are worth n / (1 + (m - 1) ρ) (L. Kish, Survey Sampling, 1965).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.results.cube.intervals import FEW_CLUSTERS, Z95

Z80 = 0.8416212335729143
"""0.8 quantile of the normal distribution."""
WORST_DISCORDANT, WORST_CLUSTERING = 1.0, 1.0
_SURELY_ENOUGH = 12.5
"""Mean of a Poisson number that is :data:`FEW_CLUSTERS` or more in 80 % of draws."""


@dataclass(frozen=True, kw_only=True)
class PairedShares:
    """How paired cases are expected to differ.

    Attributes:
        discordant: ψ, the share of cases that one of two runs alone violates, in [0, 1].
        clustering: ρ, how far the differences of a cluster's cases are alike, in [0, 1].
        touched: Share of clusters in which the runs differ, in (0, 1].
    """

    discordant: float = WORST_DISCORDANT
    clustering: float = WORST_CLUSTERING
    touched: float = 1.0


def smallest_difference(pairs: float, discordant: float) -> float:
    """Return the smallest difference of two paired proportions that a test at 5 % shows with a power of 80 %.

    Args:
        pairs: Number of independent pairs, or what clustered ones are worth.
        discordant: Share of pairs in which one alone errs, in [0, 1]; it is taken to be at least the difference.

    Returns:
        In (0, 1], NaN where no difference could be shown.
    """
    if pairs <= 0:
        return math.nan

    def shown(delta: float) -> bool:
        psi = max(discordant, delta)
        spread = math.sqrt(max(psi - delta**2, 0.0))
        return delta * math.sqrt(pairs) - Z95 * math.sqrt(psi) >= Z80 * spread

    if not shown(1.0):
        return math.nan
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def pairs_for_margin(margin: float, discordant: float) -> float:
    """Return how many independent pairs hold a margin in 80 % of runs between which nothing differs.

    Args:
        margin: What the upper end of the 95 % interval of the difference must lie below, in (0, 1].
        discordant: Share of pairs in which one alone errs, in [0, 1].
    """
    return discordant * ((Z95 + Z80) / margin) ** 2


def worth(pairs: float, clusters: float, clustering: float) -> float:
    """Return how many independent pairs as many pairs in clusters of one size are worth.

    Args:
        pairs: Their number.
        clusters: Number of clusters.
        clustering: ρ, in [0, 1].
    """
    if pairs <= 0 or clusters <= 0:
        return 0.0
    return pairs / (1.0 + (max(pairs / clusters, 1.0) - 1.0) * clustering)


def smallest_shown(expected: PairedShares, pairs: float, clusters: float) -> float:
    """Return the smallest difference (:func:`smallest_difference`) that pairs in clusters show.

    Args:
        expected: How the cases are expected to differ.
        pairs: Cases.
        clusters: What they stand in.
    """
    few = expected.touched * clusters < FEW_CLUSTERS
    return smallest_difference(worth(pairs, clusters, 1.0 if few else expected.clustering), expected.discordant)


def clusters_for_margin(margin: float, expected: PairedShares, pairs: float, clusters: float) -> int:
    """Return how many clusters of this size a margin needs (:func:`pairs_for_margin`), at least two.

    Args:
        margin: In (0, 1].
        expected: How the cases are expected to differ.
        pairs: Cases that stand in ``clusters``, above 0.
        clusters: Above 0.
    """
    needed = pairs_for_margin(margin, expected.discordant)
    resampled = max(needed * clusters / worth(pairs, clusters, expected.clustering), _SURELY_ENOUGH / expected.touched)
    return max(2, math.ceil(min(resampled, max(needed, Z95**2 * (1 - margin) / margin)) - 1e-9))


def clusters_that_agree(margin: float) -> int:
    """Return how many clusters between which nothing differs rule a loss of a margin out, at least two.

    Tango's interval of n clusters without a difference ends at z² / (n + z²).

    Args:
        margin: In (0, 1].
    """
    return max(2, math.floor(Z95**2 * (1 - margin) / margin + 1e-9) + 1)


def clustering_of(values: ArrayLike, clusters: NDArray[np.int64]) -> float:
    """Return ρ of cases: how far those of a cluster are alike, from how much wider their mean is than without clusters.

    The variance of the mean is that of a ratio of sums over clusters (W. G. Cochran, Sampling Techniques, 1977, section
    9A.2); for clusters of unequal size m is Σ size² / n.

    Args:
        values: float N; violations, or paired differences in [-1, 1].
        clusters: int64 N; number of each case's cluster.

    Returns:
        In [0, 1]; 1, the worst case, where the cases do not tell: one cluster, a case in each, or all alike.
    """
    given = np.asarray(values, dtype=np.float64)
    _, number = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(number).astype(np.float64)
    rest = given - given.mean() if given.size else given
    spread, count = float((rest**2).sum()), len(sizes)
    mean_size = float((sizes**2).sum() / max(given.size, 1))
    if count < 2 or mean_size <= 1 or spread <= 0:
        return WORST_CLUSTERING
    sums = np.bincount(number, weights=rest)
    wider = count / (count - 1) * float((sums**2).sum()) / spread
    return float(np.clip((wider - 1.0) / (mean_size - 1.0), 0.0, 1.0))
