"""A figure with its interval, and how intervals are made of the influence of single pictures.

FID, IS and KID are no means over pictures, but each changes by a known amount when one picture counts a little more:
its influence (infinitesimal jackknife: L. A. Jaeckel, Bell Laboratories memorandum 72-1215-11, 1972; B. Efron and
R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11). The influences of one cluster (a seed with all
that was drawn of it, in both sets where both hold some) are added before they are squared. A bootstrap would do for the
mean of a score but not here: a resampled set of N pictures holds fewer different ones, and FID grows as N falls.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from medtest.results.cube.intervals import Z95
from medtest.results.cube.resampling import group_numbers
from medtest.results.fidelity.features import Floats, Integers

INFLUENCE, GROUPS = "infinitesimal_jackknife", "group_jackknife"
"""Methods of intervals, beside those of :mod:`medtest.results.cube.rates`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure.

    Attributes:
        value: What it is; NaN where it is not defined.
        low: Lower end of its 95 % interval; NaN where there is none (one cluster).
        high: Upper end.
        method: How the interval was made; "" where there is none.
        spread: Standard deviation over splits or subsets, as other tools print it; NaN where there are none.
        count: Pictures.
        clusters: Clusters of those pictures.
        warning: What to know before reading it; "" for nothing.
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
    """Return the numbers of clusters of several sets of pictures, the same name the same number, and their count.

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
            numbers of their clusters. Numbers are shared among sets.
    """
    count = max((int(codes.max()) + 1 for _, codes in influences if codes.size), default=0)
    sums, there = np.zeros(count), np.zeros(count, bool)
    for one, codes in influences:
        np.add.at(sums, codes, one)
        there[codes] = True
    clusters = int(there.sum())
    if clusters < 2 or not np.isfinite(value):
        return float("nan"), float("nan")
    error = float(np.sqrt((sums**2).sum() * clusters / (clusters - 1)))
    return value - Z95 * error, value + Z95 * error
