"""Confidence intervals shared by the result tables; pure functions of counts that need only NumPy.

The Wilson interval is implemented here because importing SciPy or statsmodels takes seconds, commands that plan a run
show it, and rates of clusters have expected counts that are not whole numbers. Tests compare it with both libraries.

Rates of independent cases get Wilson's score interval (E. B. Wilson, 1927, JASA 22, 209–212). Rates that pool several
cases of one cluster (a patient, a video, a seed under several relations) get a percentile bootstrap that resamples
clusters within each data set (A. C. Davison and D. V. Hinkley, Bootstrap Methods, 1997, section 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]

Z95 = 1.959963984540054
"""0.975 quantile of the normal distribution: all intervals here are 95 % intervals."""

FEW_CLUSTERS = 10
"""Number of clusters with (or without) a violation below which the bootstrap is too narrow.

Resampling cannot produce a rare event that it has not seen. Such pools get Wilson's interval with every cluster counted
as one case, which is conservative. In simulations (6 to 100 clusters of 45 cases, rates of 2 to 15 %) the nominal 95 %
intervals then covered the true rate in 88 to 100 % of the repetitions, against 87 to 99 % with 5 in place of 10.
"""


def wilson(successes: ArrayLike, cases: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's 95 % interval as fractions; NaN without cases.

    Args:
        successes: Counts, or expected counts, in [0, cases].
        cases: Number of independent cases, same shape.
    """
    k = np.asarray(successes, dtype=np.float64)
    n = np.asarray(cases, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = k / n
        centre = (rate + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
        half = Z95 / (1 + Z95**2 / n) * np.sqrt(np.maximum(rate * (1 - rate), 0) / n + Z95**2 / (4 * n**2))
    low = np.where(k <= 0, 0.0, np.maximum(centre - half, 0.0))
    high = np.where(k >= n, 1.0, np.minimum(centre + half, 1.0))
    empty = n <= 0
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


def wilson_ends(successes: float, cases: float) -> tuple[float, float]:
    """Return the ends of :func:`wilson` for one count, as fractions."""
    low, high = wilson(successes, cases)
    return float(low), float(high)


def with_ends(name: str, values: Iterable[float | None]) -> dict[str, float | None]:
    """Return a figure and the ends of its interval as columns ``<name>``, ``<name>_low`` and ``<name>_high``."""
    return {
        f"{name}{end}": None if value is None else round(float(value), 6)
        for end, value in zip(("", "_low", "_high"), values, strict=True)
    }


def wilson_of_rate(rate: float, cases: float) -> tuple[float, float]:
    """Return the ends of :func:`wilson` for one rate in [0, 1]; a rate of NaN (no cases) counts as 0."""
    return wilson_ends(float(np.nan_to_num(rate)) * cases, cases)


def joined(rate: float, ends: tuple[float, float], rate0: float, ends0: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of the interval for ``rate - rate0``, combined from both intervals.

    With Wilson's intervals this is Newcombe's (Statistics in Medicine 17, 1998, 873-890, method 10). The method applies
    to any two intervals: G. Y. Zou and A. Donner, Statistics in Medicine 27, 2008.
    """
    below = float(np.hypot(rate - ends[0], ends0[1] - rate0))
    above = float(np.hypot(ends[1] - rate, rate0 - ends0[0]))
    return rate - rate0 - below, rate - rate0 + above


def paired_score(only_first: float, only_second: float, cases: float) -> tuple[float, float]:
    """Return the ends of Tango's 95 % score interval for a difference of two paired proportions, first minus second.

    They are the differences at which the score statistic, with the other proportion at its restricted maximum
    likelihood, is the normal quantile (T. Tango, Statistics in Medicine 17, 1998, 891-908, equations 4 to 6).

    Args:
        only_first: Count, or expected count, of pairs where only the first is a success, at least 0.
        only_second: The same for the second; both sum to at most ``cases``.
        cases: Number of independent pairs, above 0.

    Returns:
        Lower and upper end, in [-1, 1].
    """
    observed = (only_first - only_second) / cases

    def statistic(difference: float) -> float:
        b = -only_first - only_second + (2 * cases - only_first + only_second) * difference
        c = -only_second * difference * (1 - difference)
        second = (math.sqrt(max(b * b - 8 * cases * c, 0.0)) - b) / (4 * cases)
        variance = cases * (2 * second + difference * (1 - difference))
        gap = cases * (observed - difference)
        return gap / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, gap) if gap else 0.0

    def end(inside: float, outside: float) -> float:
        for _ in range(60):  # the statistic decreases as the difference grows
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if abs(statistic(middle)) < Z95 else (inside, middle)
        return inside

    return end(observed, -1.0), end(observed, 1.0)


def percentile_interval(draws: ArrayLike, axis: int = 0) -> tuple[Floats, Floats]:
    """Return the 2.5 % and 97.5 % quantiles of bootstrap draws; NaN draws (empty resamples) are ignored.

    Values between two draws are interpolated linearly (Hyndman and Fan, The American Statistician 50, 1996: definition
    7).

    Args:
        draws: Numbers of any shape, at least one draw along ``axis``.
        axis: Axis of the draws.

    Returns:
        Lower and upper ends, float64 each, of the shape of ``draws`` without ``axis``; NaN where every draw is NaN.
    """
    values = np.moveaxis(np.asarray(draws, dtype=np.float64), axis, -1)
    flat = np.ascontiguousarray(values.reshape(-1, values.shape[-1]))
    nan_count = np.isnan(flat).sum(1)
    low, high = np.full(len(flat), np.nan), np.full(len(flat), np.nan)
    complete = nan_count == 0
    if complete.any():
        low[complete], high[complete] = _ends(flat if complete.all() else flat[complete])
    for row in np.flatnonzero(~complete & (nan_count < flat.shape[1])):
        valid = flat[row, ~np.isnan(flat[row])]
        low[row], high[row] = (float(end[0]) for end in _ends(valid[None]))
    return low.reshape(values.shape[:-1]), high.reshape(values.shape[:-1])


def percentile_ends(draws: ArrayLike) -> tuple[float, float]:
    """Return the ends of :func:`percentile_interval` for one row of draws."""
    low, high = percentile_interval(draws)
    return float(low), float(high)


def _ends(rows: Floats) -> tuple[Floats, Floats]:
    """Return both quantiles of every row with the interpolation of numpy.quantile, several times faster."""
    last = rows.shape[1] - 1
    places = [0.025 * last, 0.975 * last]
    below = [int(place) for place in places]
    above = [min(place + 1, last) for place in below]
    parted = np.partition(rows, sorted({*below, *above}), axis=1)
    low, high = (
        parted[:, under] + (place - under) * (parted[:, over] - parted[:, under])
        for place, under, over in zip(places, below, above, strict=True)
    )
    return low, high


def smallest_upper_bound(cases: int) -> float:
    """Return the upper end of the interval, in percent, for this many independent cases without a violation."""
    if cases <= 0:
        return 100.0
    return float(100 * wilson(0, cases)[1])


def corrected_share(
    share: float, cases: float, *, sensitivity: float, positives: float, specificity: float, negatives: float
) -> tuple[float, float, float]:
    """Return a share corrected for the errors of the test that measured it, and its 95 % interval, clipped to [0, 1].

    The estimate is Rogan and Gladen's, ``(share + Sp - 1) / (Se + Sp - 1)`` (American Journal of Epidemiology 107,
    1978, 71-76). The interval includes the uncertainty of sensitivity and specificity (Z. Lang and J. Reiczigel,
    Preventive Veterinary Medicine 113, 2014, 13-22, equations 6, 7, 16 and 17; equation 4 with ``(1 - P)²``, as the
    delta method gives it).

    Args:
        share: Measured share, in [0, 1].
        cases: Number of independent cases, above 0.
        sensitivity: Measured sensitivity of the test.
        positives: Number of positive cases that it was measured on.
        specificity: Measured specificity.
        negatives: Number of negative cases that it was measured on.

    Returns:
        Estimate, lower and upper end; NaN each if the test is no better than chance.
    """
    if sensitivity + specificity <= 1 or cases <= 0:
        return math.nan, math.nan, math.nan
    estimate = (share + specificity - 1) / (sensitivity + specificity - 1)
    squared = Z95**2
    n, apparent = cases + squared, (cases * share + squared / 2) / (cases + squared)
    n_se, se = positives + 2, (positives * sensitivity + 1) / (positives + 2)
    n_sp, sp = negatives + 2, (negatives * specificity + 1) / (negatives + 2)
    if se + sp <= 1:
        return math.nan, math.nan, math.nan
    middle = (apparent + sp - 1) / (se + sp - 1)
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    shift = 2 * squared * (middle * of_se - (1 - middle) * of_sp)
    variance = apparent * (1 - apparent) / n + middle**2 * of_se + (1 - middle) ** 2 * of_sp
    half = Z95 * math.sqrt(variance) / (se + sp - 1)
    low, high = middle + shift - half, middle + shift + half
    clipped = [min(max(value, 0.0), 1.0) for value in (estimate, low, high)]
    return clipped[0], clipped[1], clipped[2]


def effective_cases(rate: float, low: float, high: float, cases: float) -> float:
    """Return the number of independent cases whose rate varies as much as one with a given interval, at most ``cases``.

    It is ``rate · (1 - rate)`` over the variance, which is that of a normal distribution with the interval's width.
    """
    variance = ((high - low) / (2 * Z95)) ** 2
    return cases if variance <= 0 else min(cases, max(rate * (1 - rate) / variance, 1.0))
