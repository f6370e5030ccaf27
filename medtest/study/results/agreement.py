"""Randolph's free-marginal multirater kappa, its interval, and intervals of means: pure functions of counts.

Intervals are 95 % percentile bootstraps that resample seeds with all their items: several follow-ups of one image are
not independent.

J. J. Randolph (2005), Free-marginal multirater kappa: an alternative to Fleiss' fixed-marginal multirater kappa. With
``n`` raters, ``k`` categories and ``c_ij`` of item i's ratings in category j,
``P_i = (Σ_j c_ij² - n) / (n (n - 1))`` and ``κ = (mean P - 1/k) / (1 - 1/k)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.results.cube.intervals import percentile_ends
from medtest.results.cube.resampling import Resampler, group_numbers

Counts = NDArray[np.int64]

_SAME = 1e-6
"""Tolerance within which draws count as one value, summed in different orders."""
_WORDS = ((0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))


@dataclass(frozen=True, kw_only=True)
class Kappa:
    """A kappa with its interval.

    Attributes:
        value: κ; NaN if no item has two raters.
        low: Lower end of the 95 % interval; NaN if there is nothing to resample.
        high: Upper end.
        items: Number of items with all ratings, on which it is based.
        left_out: Number of items with fewer ratings.
        raters: Number of ratings per item.
    """

    value: float
    low: float
    high: float
    items: int
    left_out: int
    raters: int

    @property
    def words(self) -> str:
        """Strength in the terms of J. R. Landis and G. G. Koch (1977)."""
        if self.value != self.value:
            return ""
        if self.value < 0:
            return "poor"
        return next((word for bound, word in _WORDS if self.value <= bound), "almost perfect")


def item_agreement(counts: Counts) -> NDArray[np.float64]:
    """Return each item's share of agreeing pairs of raters; NaN for items with fewer than two ratings.

    Args:
        counts: int64 items × categories.
    """
    raters = counts.sum(1).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = ((counts.astype(np.float64) ** 2).sum(1) - raters) / (raters * (raters - 1))
    return np.where(raters > 1, share, np.nan)


def randolph(counts: Counts, name: str = "", seeds: Sequence[str] | None = None) -> Kappa:
    """Return Randolph's κ of the items judged by all raters, with its bootstrap interval.

    Args:
        counts: int64 items × categories, with a column for every category.
        name: Seed of the bootstrap's random numbers.
        seeds: Seed of each item; by default each item is its own.
    """
    raters = counts.sum(1)
    full = int(raters.max()) if raters.size else 0
    judged = raters == full if full > 1 else np.zeros(len(counts), bool)
    whole = counts[judged]
    if not len(whole):
        nothing = float("nan")
        return Kappa(value=nothing, low=nothing, high=nothing, items=0, left_out=len(counts), raters=full)
    from statsmodels.stats.inter_rater import fleiss_kappa

    value = float(fleiss_kappa(whole, method="randolph"))
    chance = 1 / counts.shape[1]
    groups = None if seeds is None else [seed for seed, chosen in zip(seeds, judged, strict=True) if chosen]
    drawn = resampled_means(item_agreement(whole), np.ones(len(whole)), name, groups)
    low, high = _ends((drawn - chance) / (1 - chance))
    return Kappa(
        value=value,
        low=low,
        high=high,
        items=len(whole),
        left_out=len(counts) - len(whole),
        raters=full,
    )


def resampled_means(
    sums: NDArray[np.float64], weights: NDArray[np.float64], name: str, seeds: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Return means over resampled seeds: ``Σ sums / Σ weights``, one per replicate.

    Args:
        sums: float64 N, sum of each item.
        weights: float64 N, number of values in each sum.
        name: Seed of the random numbers.
        seeds: Seed of each item, resampled with all its items; by default each item is its own.
    """
    numbers, count = (np.arange(len(sums)), len(sums)) if seeds is None else group_numbers(list(seeds))
    rows = np.stack([np.bincount(numbers, part, count) for part in (sums, weights)], axis=1)
    drawn = Resampler(len(rows), f"study {name}").drawn(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(drawn[:, 1] > 0, drawn[:, 0] / drawn[:, 1], np.nan)


def mean_interval(counts: Counts, name: str, seeds: Sequence[str] | None = None) -> tuple[float, float, float]:
    """Return the mean level over all ratings and its 95 % bootstrap interval (NaN for a single seed or answer).

    Args:
        counts: int64 items × 5.
        name: Seed of the random numbers.
        seeds: Seed of each item; by default each item is its own.
    """
    levels = np.arange(1, counts.shape[1] + 1)
    sums, weights = (counts * levels).sum(1).astype(np.float64), counts.sum(1).astype(np.float64)
    total = float(weights.sum())
    if total == 0:
        return float("nan"), float("nan"), float("nan")
    return float(sums.sum()) / total, *_ends(resampled_means(sums, weights, name, seeds))


def _ends(drawn: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of an interval; NaN if all draws are equal (one seed, or one answer to all items).

    Resampling is uninformative in that case, and an interval of zero width would suggest certainty.
    """
    finite = drawn[~np.isnan(drawn)]
    if not finite.size or np.ptp(finite) < _SAME:
        return float("nan"), float("nan")
    return percentile_ends(drawn)
