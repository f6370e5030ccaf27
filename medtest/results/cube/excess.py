"""Excess of a rate in a part of the cases over the rest, tested by cluster.

The test is the score test of equal rates with the variance estimated between clusters (D. Boos, The American
Statistician 46, 1992, 327-333). It allows for any dependence within a cluster, also where one cluster has cases in the
part and in the rest. Its variance assumes equal rates, so z is hardly above the square root of the number of clusters
with a violation: a few violations cannot look significant.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def excess(
    violated: NDArray[np.bool_], inside: NDArray[np.bool_], cluster: NDArray[np.int64], clusters: int
) -> tuple[float, float]:
    """Return the difference of two rates and its score statistic.

    Args:
        violated: bool N; violations.
        inside: bool N; cases of the part, the others are the rest.
        cluster: int64 N; cluster of each case, in [0, clusters).
        clusters: Number of clusters.

    Returns:
        Rate of the part minus rate of the rest, in [-1, 1], and z, standard normal where both are equal; 0 and 0 if
        either has no case.
    """
    size = int(np.count_nonzero(inside)), int(np.count_nonzero(~inside))
    if not all(size):
        return 0.0, 0.0
    rate = float(violated.mean())
    share = np.where(inside, 1.0 / size[0], -1.0 / size[1])
    terms = np.bincount(cluster, weights=share * (violated - rate), minlength=clusters)
    spread = math.sqrt(float(terms @ terms))
    difference = float(share @ violated)
    return difference, float(terms.sum()) / spread if spread > 0 else 0.0


def two_sided(z: float) -> float:
    """Return the two-sided p of a standard normal statistic."""
    return math.erfc(abs(z) / math.sqrt(2.0))
