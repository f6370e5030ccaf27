"""Power of paired cases: smallest detectable difference and pairs needed for a margin, also in clusters.

R. J. Connor, Biometrics 43, 1987: with discordant share ψ and difference δ the power of McNemar's test is that of a
normal with mean δ√n, against 1.96 √ψ, with variance ψ - δ². If nothing differs, the upper end of the 95 % interval of
the difference is below a margin m with the probability that a normal with deviation √(ψ/n) is below m - 1.96 √(ψ/n) (J.
Liu et al., Statistics in Medicine 21, 2002, for δ = 0).

If runs differ in fewer than ten clusters, tables count each cluster as one case
(:data:`medtest.results.cube.intervals.FEW_CLUSTERS`), and so do the calculations here.

Pairs of one cluster (severities, frames, images of a patient) carry less information than independent pairs: n pairs, m
per cluster, with correlation ρ are equivalent to n / (1 + (m - 1) ρ) independent ones (L. Kish, Survey Sampling, 1965).
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
"""Mean of a Poisson variable that is :data:`FEW_CLUSTERS` or more in 80 % of draws."""


@dataclass(frozen=True, kw_only=True)
class PairedShares:
    """Expected differences between paired cases.

    Attributes:
        discordant: ψ, the share of cases that only one of two runs violates, in [0, 1].
        clustering: ρ, the correlation of differences within a cluster, in [0, 1].
        touched: Share of clusters in which the runs differ, in (0, 1].
    """

    discordant: float = WORST_DISCORDANT
    clustering: float = WORST_CLUSTERING
    touched: float = 1.0


def smallest_difference(pairs: float, discordant: float) -> float:
    """Return the smallest difference of two paired proportions that a test at 5 % detects with a power of 80 %.

    Args:
        pairs: Number of independent pairs, or their equivalent for clustered ones.
        discordant: Share of pairs in which only one errs, in [0, 1]; raised to the difference if smaller.

    Returns:
        Difference in (0, 1]; NaN if no difference is detectable.
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
    """Return the number of independent pairs that confirm a margin in 80 % of runs without a difference.

    Args:
        margin: Upper bound for the 95 % interval of the difference, in (0, 1].
        discordant: Share of pairs in which only one errs, in [0, 1].
    """
    return discordant * ((Z95 + Z80) / margin) ** 2


def worth(pairs: float, clusters: float, clustering: float) -> float:
    """Return the number of independent pairs that are equivalent to pairs in clusters of equal size.

    Args:
        pairs: Number of pairs.
        clusters: Number of clusters.
        clustering: ρ, in [0, 1].
    """
    if pairs <= 0 or clusters <= 0:
        return 0.0
    return pairs / (1.0 + (max(pairs / clusters, 1.0) - 1.0) * clustering)


def smallest_shown(expected: PairedShares, pairs: float, clusters: float) -> float:
    """Return the smallest difference (:func:`smallest_difference`) that pairs in clusters detect.

    Args:
        expected: Expected differences between the cases.
        pairs: Number of pairs.
        clusters: Number of clusters.
    """
    few = expected.touched * clusters < FEW_CLUSTERS
    return smallest_difference(worth(pairs, clusters, 1.0 if few else expected.clustering), expected.discordant)


def clusters_for_margin(margin: float, expected: PairedShares, pairs: float, clusters: float) -> int:
    """Return the number of clusters of this size that a margin needs (:func:`pairs_for_margin`), at least two.

    Args:
        margin: In (0, 1].
        expected: Expected differences between the cases.
        pairs: Number of pairs in all clusters, above 0.
        clusters: Number of clusters, above 0.
    """
    needed = pairs_for_margin(margin, expected.discordant)
    resampled = max(needed * clusters / worth(pairs, clusters, expected.clustering), _SURELY_ENOUGH / expected.touched)
    return max(2, math.ceil(min(resampled, max(needed, Z95**2 * (1 - margin) / margin)) - 1e-9))


def agreeing_clusters(margin: float) -> int:
    """Return the number of clusters without a difference that exclude a loss of a margin, at least two.

    Tango's interval of n clusters without a difference ends at z² / (n + z²).

    Args:
        margin: In (0, 1].
    """
    return max(2, math.floor(Z95**2 * (1 - margin) / margin + 1e-9) + 1)


def clustering_of(values: ArrayLike, clusters: NDArray[np.int64]) -> float:
    """Return ρ of cases within clusters, from the excess variance of their mean.

    The variance of the mean is that of a ratio of sums over clusters (W. G. Cochran, Sampling Techniques, 1977, section
    9A.2); for clusters of unequal size m is Σ size² / n.

    Args:
        values: float N; violations, or paired differences in [-1, 1].
        clusters: int64 N; index of each case's cluster.

    Returns:
        ρ in [0, 1]; 1, the worst case, if it cannot be estimated: one cluster, one case in each, or all values equal.
    """
    numbers = np.asarray(values, dtype=np.float64)
    _, number = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(number).astype(np.float64)
    residuals = numbers - numbers.mean() if numbers.size else numbers
    spread, count = float((residuals**2).sum()), len(sizes)
    mean_size = float((sizes**2).sum() / max(numbers.size, 1))
    if count < 2 or mean_size <= 1 or spread <= 0:
        return WORST_CLUSTERING
    sums = np.bincount(number, weights=residuals)
    wider = count / (count - 1) * float((sums**2).sum()) / spread
    return float(np.clip((wider - 1.0) / (mean_size - 1.0), 0.0, 1.0))
