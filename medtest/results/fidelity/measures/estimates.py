"""Figures with intervals computed from the influence of single pictures.

FID, IS and KID are not means over pictures, but each changes by a known amount when the weight of one picture changes:
its influence (infinitesimal jackknife: L. A. Jaeckel, Bell Laboratories memorandum 72-1215-11, 1972; B. Efron and R. J.
Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11). The influences within a cluster (a seed with all
pictures drawn from it, in both sets if both have some) are added before they are squared. A bootstrap would be biased
here: a resampled set of N pictures has fewer distinct ones, and FID grows as N falls.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from medtest.results.cube.intervals import Z95
from medtest.results.cube.resampling import group_numbers
from medtest.results.fidelity.features import Floats, Integers

INFLUENCE, GROUPS = "infinitesimal_jackknife", "group_jackknife"
"""Methods of intervals, in addition to those of :mod:`medtest.results.cube.rates`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its interval.

    Attributes:
        value: The figure; NaN if it is not defined.
        low: Lower end of its 95 % interval; NaN without one (one cluster).
        high: Upper end.
        method: Method of the interval; "" without one.
        spread: Standard deviation over splits or subsets, as other tools print it; NaN without them.
        count: Number of pictures.
        clusters: Number of clusters of those pictures.
        warning: Caveat for readers of the figure, or "".
    """

    value: float
    low: float = float("nan")
    high: float = float("nan")
    method: str = ""
    spread: float = float("nan")
    count: int = 0
    clusters: int = 0
    warning: str = ""


def cluster_numbers(*sides: Sequence[Hashable]) -> tuple[list[Integers], int]:
    """Return the cluster indices of several sets of pictures, equal for equal names, and the number of clusters.

    Args:
        sides: The cluster of each picture of a set.
    """
    codes, count = group_numbers([str(name) for side in sides for name in side] or np.zeros(0, np.int64))
    ends = np.cumsum([len(side) for side in sides])[:-1]
    return list(np.split(codes, ends)), count


def interval_of_influence(value: float, influences: Sequence[tuple[Floats, Integers]]) -> tuple[float, float]:
    """Return the ends of a figure's 95 % interval; NaN with fewer than two clusters.

    Args:
        value: The figure.
        influences: For each set its pictures' influences, divided by the number of pictures of the set, with the
            indices of their clusters, which are shared among sets.
    """
    count = max((int(codes.max()) + 1 for _, codes in influences if codes.size), default=0)
    sums, present = np.zeros(count), np.zeros(count, bool)
    for influence, codes in influences:
        np.add.at(sums, codes, influence)
        present[codes] = True
    clusters = int(present.sum())
    if clusters < 2 or not np.isfinite(value):
        return float("nan"), float("nan")
    error = float(np.sqrt((sums**2).sum() * clusters / (clusters - 1)))
    return value - Z95 * error, value + Z95 * error
