"""Intervals and resampling that the result tables share. Pure functions of counts; NumPy alone.

Rates of independent cases get Wilson's score interval (E. B. Wilson, 1927, JASA 22, 209–212). Rates that pool several
cases of one cluster (a patient, a video, a seed under several relations) get a percentile bootstrap that resamples
clusters within each data set (A. C. Davison and D. V. Hinkley, Bootstrap Methods, 1997, section 3.8).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]

Z95 = 1.959963984540054
"""0.975 quantile of the normal distribution: all intervals here are 95 % intervals."""

REPLICATES = 2000
"""Bootstrap replicates: the ends of a 95 % interval then rest on 50 replicates each."""

FEW_CLUSTERS = 10
"""Below this many clusters with (or without) a violation the bootstrap is too narrow: resampling cannot invent a rare
event that it has not seen. Such pools get Wilson's interval with every cluster counted as one case, which errs towards
being wide. In simulations (6 to 100 clusters of 45 cases, rates of 2 to 15 %) the nominal 95 % intervals then held the
true rate in 88 to 100 % of the repetitions, against 87 to 99 % with 5 in place of 10."""

_CACHED_WEIGHTS = 20_000_000


def wilson(successes: ArrayLike, cases: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's 95 % interval as fractions; NaN where there is no case.

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
    """Return the ends of :func:`wilson` of one count, as fractions."""
    low, high = wilson(successes, cases)
    return float(low), float(high)


def wilson_of_rate(rate: float, cases: float) -> tuple[float, float]:
    """Return the ends of :func:`wilson` of one rate in [0, 1]; NaN, the rate of no case, counts as 0."""
    return wilson_ends(float(np.nan_to_num(rate)) * cases, cases)


def paired_score(only_first: float, only_second: float, cases: float) -> tuple[float, float]:
    """Return the ends of Tango's 95 % score interval for a difference of two paired proportions, first minus second.

    They are the differences at which the score statistic, with the other proportion at its restricted maximum
    likelihood, is the normal quantile (T. Tango, Statistics in Medicine 17, 1998, 891-908, equations 4 to 6).

    Args:
        only_first: Count, or expected count, of pairs where the first alone is a success, at least 0.
        only_second: The same of the second; both together at most ``cases``.
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
        for _ in range(60):  # the statistic falls as the difference grows
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if abs(statistic(middle)) < Z95 else (inside, middle)
        return inside

    return end(observed, -1.0), end(observed, 1.0)


def generator(*names: object) -> np.random.Generator:
    """Return a generator fixed by names, so that tables made twice agree to the last digit."""
    key = "\x1f".join(["medtest.results", *(str(name) for name in names)])
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big")))


class Resampler:
    """Draws clusters with replacement, again and again the same ones, and sums their rows.

    Args:
        clusters: How many clusters there are.
        name: Fixes the random numbers; use the data set's id.
        replicates: How many draws.
    """

    def __init__(self, clusters: int, name: str, replicates: int = REPLICATES) -> None:
        self.clusters = clusters
        self.replicates = replicates
        self._name = name
        self._kept: list[NDArray[np.float32]] | None = None

    def sums(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the sums of resampled clusters, alike on every processor.

        Args:
            rows: float32 clusters × K, one row of sums per cluster.

        Returns:
            float32 replicates × K, the exact sums rounded once.
        """
        if self.clusters == 0:
            return np.zeros((self.replicates, rows.shape[1]), np.float32)
        exact = _exact(rows, self.clusters)
        return np.concatenate(
            [
                np.matmul(weights.astype(exact.dtype, copy=False), exact).astype(np.float32)
                for weights in self._weights()
            ]
        )

    def weights(self, count: int) -> NDArray[np.float32]:
        """Return how often each cluster is drawn in the first replicates.

        Args:
            count: How many replicates, at most all.

        Returns:
            float32 count × clusters.
        """
        found: list[NDArray[np.float32]] = []
        for chunk in self._weights() if self.clusters else ():
            found.append(chunk)
            if sum(len(one) for one in found) >= count:
                break
        return np.concatenate([*found, np.zeros((0, self.clusters), np.float32)])[:count]

    def _weights(self) -> Iterator[NDArray[np.float32]]:
        if self._kept is not None:
            yield from self._kept
            return
        keep: list[NDArray[np.float32]] | None = [] if self.clusters * self.replicates <= _CACHED_WEIGHTS else None
        rng = generator("clusters", self._name, self.clusters)
        step = max(1, min(self.replicates, 2_000_000 // self.clusters))
        for start in range(0, self.replicates, step):
            count = min(step, self.replicates - start)
            drawn = rng.integers(self.clusters, size=(count, self.clusters))
            drawn += np.arange(count)[:, None] * self.clusters
            weights = np.bincount(drawn.ravel(), minlength=count * self.clusters).astype(np.float32)
            chunk = weights.reshape(count, self.clusters)
            if keep is not None:
                keep.append(chunk)
            yield chunk
        self._kept = keep


def _exact(rows: NDArray[np.float32], cases: int) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return rows whose sums are exact in every order, for a product of matrices adds in the processor's own.

    Whole numbers stay float32 where no sum reaches 2^24. Others become float64 multiples of a power of two, of which no
    sum holds more than 2^52: scores lose nothing by it.

    Args:
        rows: float32 of any shape.
        cases: How many of them are added at most.
    """
    largest = float(np.abs(rows).max(initial=0.0)) * cases
    if largest < 2**24 and np.array_equal(rows, np.rint(rows)):
        return rows
    bits = 52 - math.frexp(largest)[1]
    return np.ldexp(np.rint(np.ldexp(rows.astype(np.float64), bits)), -bits)


def percentile_interval(draws: ArrayLike, axis: int = 0) -> tuple[Floats, Floats]:
    """Return the 2.5 % and 97.5 % quantiles of bootstrap draws; NaN draws (empty resamples) are left out.

    Between two draws it interpolates linearly (Hyndman and Fan, The American Statistician 50, 1996: definition 7).

    Args:
        draws: Numbers of any shape, at least one draw along ``axis``.
        axis: The axis of the draws.

    Returns:
        Lower and upper ends, float64 each, of the shape of ``draws`` without ``axis``; NaN where every draw is NaN.
    """
    values = np.moveaxis(np.asarray(draws, dtype=np.float64), axis, -1)
    flat = np.ascontiguousarray(values.reshape(-1, values.shape[-1]))
    missing = np.isnan(flat).sum(1)
    low, high = np.full(len(flat), np.nan), np.full(len(flat), np.nan)
    whole = missing == 0
    if whole.any():
        low[whole], high[whole] = _ends(flat if whole.all() else flat[whole])
    for row in np.flatnonzero(~whole & (missing < flat.shape[1])):
        kept = flat[row, ~np.isnan(flat[row])]
        low[row], high[row] = (float(end[0]) for end in _ends(kept[None]))
    return low.reshape(values.shape[:-1]), high.reshape(values.shape[:-1])


def percentile_ends(draws: ArrayLike) -> tuple[float, float]:
    """Return the ends of :func:`percentile_interval` of one row of draws."""
    low, high = percentile_interval(draws)
    return float(low), float(high)


def _ends(rows: Floats) -> tuple[Floats, Floats]:
    """Return both quantiles of every row, as numpy.quantile interpolates them; several times as fast."""
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
    """Return the upper end of the interval, in percent, that this many independent cases reach without a violation."""
    if cases <= 0:
        return 100.0
    return float(100 * wilson(0, cases)[1])


def group_numbers(values: ArrayLike) -> tuple[NDArray[np.int64], int]:
    """Return each value's number from 0 without gaps (in sorted order), and how many there are.

    Args:
        values: Names or numbers of any shape, taken row by row; all of one sort.

    Returns:
        int64 of shape (number of values,), in [0, groups), and the number of groups.
    """
    unique, codes = np.unique(np.asarray(values), return_inverse=True)
    return codes.astype(np.int64).ravel(), int(unique.size)
