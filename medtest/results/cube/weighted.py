"""Rates of cases that stand for different shares of a population: estimates with intervals, by weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.results.cube.intervals import wilson_ends
from medtest.results.cube.resampling import group_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedRate:
    """A rate of a population, estimated from a sample that does not look like it.

    Attributes:
        rate: In [0, 1]; NaN without a case.
        low: Lower end of its 95 % interval.
        high: Upper end.
    """

    rate: float
    low: float
    high: float


def weighted_rate(failed: ArrayLike, weights: ArrayLike, clusters: ArrayLike | None = None) -> WeightedRate:
    """Return the population's rate as weighted cases estimate it.

    Cases of one weight are a stratum. The rate is the strata's rates by their shares of all weight (W. G. Cochran,
    Sampling Techniques, 1977, section 5.3); its interval joins the strata's Wilson intervals (G. Y. Zou and A. Donner,
    Statistics in Medicine 27, 2008), which holds where few cases stand for many and hardly any failed. Cases of one
    cluster count as as many independent ones as would have their variance, no more than they are.

    Args:
        failed: 0 or 1 of each case, N.
        weights: How much of the population each stands for, N, above 0.
        clusters: What is independent of each other, N names or numbers; each case of itself where None.
    """
    values, weight = np.asarray(failed, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if values.size == 0:
        return WeightedRate(rate=float("nan"), low=float("nan"), high=float("nan"))
    codes, _ = group_numbers(np.arange(values.size) if clusters is None else clusters)
    strata, _ = group_numbers(weight)
    total = float(weight.sum())
    rate = below = above = 0.0
    for stratum in range(int(strata.max()) + 1):
        of_it = strata == stratum
        share, own = float(weight[of_it].sum()) / total, float(values[of_it].mean())
        independent = _independent(values[of_it], codes[of_it])
        low, high = wilson_ends(own * independent, independent)
        rate += share * own
        below += (share * (own - low)) ** 2
        above += (share * (high - own)) ** 2
    return WeightedRate(
        rate=min(1.0, rate), low=max(0.0, rate - float(np.sqrt(below))), high=min(1.0, rate + float(np.sqrt(above)))
    )


def _independent(values: NDArray[np.float64], clusters: NDArray[np.int64]) -> float:
    """Return as how many independent cases clustered ones count: by their variance, or by clusters where all agree."""
    codes, count = group_numbers(clusters)
    if count == values.size:
        return float(count)
    rate = float(values.mean())
    if not 0.0 < rate < 1.0 or count < 2:
        return float(count)
    residual = np.bincount(codes, weights=values - rate, minlength=count)
    variance = float((residual**2).sum()) / values.size**2 * count / (count - 1)
    return float(values.size) if variance == 0.0 else min(float(values.size), rate * (1 - rate) / variance)
