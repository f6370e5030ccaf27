"""Rates with intervals, over cells and over pools of them.

A pool of relations is one of three: its ``cases`` together; the mean of its ``cells``, one relation on one data set
each; the ``mean`` of its relations, data sets together. Cells without a case are in no mean.

One draw resamples the clusters (seeds, patients) of each data set with replacement and takes all their cases along, so
that pools have intervals of their own. Where fewer than ten clusters have a hit, or fewer than ten a miss, resampling
cannot invent what it has not seen: Wilson's interval stands there, every cluster counted as one case. A rate in [0, 1]
varies no more than a yes or no of the same mean, so that this errs towards being wide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.results.cube.axes import Floats, Places, with_all
from medtest.results.cube.intervals import FEW_CLUSTERS, percentile_interval, wilson

if TYPE_CHECKING:
    import pandas as pd

CASES, CELLS, MEAN = "cases", "cells", "mean"
WILSON, WILSON_CLUSTERS, BOOTSTRAP = "wilson", "wilson_clusters", "cluster_bootstrap"


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Rates and their intervals, (data sets + all) × (relations + pools) × (severities + all) each.

    Attributes:
        part: Numerators.
        whole: Denominators.
        clusters: Clusters with a denominator.
        rate: ``part / whole`` or a mean of such, NaN where there is no denominator; and likewise the following.
        low: Lower end of the 95 % interval.
        high: Upper end.
        method: How the interval was made.
    """

    part: Floats
    whole: Floats
    clusters: Floats
    rate: Floats
    low: Floats
    high: Floats
    method: NDArray[np.object_]


def rates(
    place: Places,
    part: ArrayLike,
    whole: ArrayLike,
    *,
    pools: Sequence[str] = (),
    pooled: NDArray[np.bool_] | None = None,
    independent: bool = False,
    resampled: NDArray[np.bool_] | None = None,
    scale: Floats | None = None,
) -> Rates:
    """Return the rates of every cell of relations × severities, and of pools.

    Args:
        place: Where the N cases stand; its shape has two axes.
        part: N numerators in [0, whole].
        whole: N denominators.
        pools: Pools of relations to append: ``cases``, ``cells``, ``mean``.
        pooled: bool R; relations in the pools, None for all.
        independent: Cells whose clusters hold one case each have Wilson's interval and no bootstrap.
        resampled: bool (relations + pools) × (severities + all); the others have Wilson's interval with every cluster
            counted as one case and are not drawn. None resamples all; else pools are of ``cases`` alone.
        scale: Multiplies the rates of each relation; None for 1.
    """
    pooling = _Pooling(pools, np.ones(place.shape[0], bool) if pooled is None else pooled, scale)
    sums = place.sums(part, whole)
    totals = np.stack([one.sum(0) for one in sums])
    sets = [[number] for number in range(len(sums))]
    sets.append(sets[0] if len(sums) == 1 else [number for (number,) in sets])
    rate = np.stack([pooling.rates(totals[one]) for one in sets])
    if resampled is None:
        drawn = place.drawn(sums)
        ends = [percentile_interval(pooling.rates(np.stack([drawn[n] for n in one], axis=1))) for one in sets]
    else:
        ends = _ends_of_some(place, [pooling.margins(one) for one in sums], sets, resampled)
    counts = [with_all(pooling.margins(totals[:, which]), 0) for which in (0, 1)]
    steady = np.zeros(rate.shape[1:], bool) if resampled is None else ~resampled
    return _with_intervals(pooling, rate, ends, counts, pooling.clusters(sums), independent=independent, steady=steady)


def _ends_of_some(
    place: Places, sums: Sequence[Floats], sets: Sequence[Sequence[int]], chosen: NDArray[np.bool_]
) -> list[tuple[Floats, Floats]]:
    """Return the ends of the chosen rates of each set of data sets, NaN for the others.

    Args:
        place: Where the cases stand.
        sums: clusters × 2 × cells and pools of each data set.
        sets: Numbers of the data sets.
        chosen: Which cells and pools.
    """
    found = [(np.full(chosen.shape, np.nan), np.full(chosen.shape, np.nan)) for _ in sets]
    if chosen.any():
        drawn = place.drawn([one[..., chosen] for one in sums])
        for (low, high), numbers in zip(found, sets, strict=True):
            part, whole = np.sum([drawn[number] for number in numbers], axis=0).swapaxes(0, 1)
            low[chosen], high[chosen] = percentile_interval(_rate(part, whole))
    return found


@dataclass(frozen=True)
class _Pooling:
    pools: Sequence[str]
    pooled: NDArray[np.bool_]
    scale: Floats | None

    def margins(self, values: Floats) -> Floats:
        return margins(values, self.pooled, len(self.pools))

    def rates(self, sums: Floats) -> Floats:
        """Return … × (relations + pools) × (severities + all) of … × data sets × 2 × relations × severities sums."""
        together = with_all(sums.sum(-4), -1)
        rate = _rate(together[..., 0, :, :], together[..., 1, :, :])
        if self.scale is not None:
            rate = rate * self.scale[:, None]
        rows = [rate]
        for pool in self.pools:
            if pool == CASES:
                both = together[..., self.pooled, :].sum(-2, keepdims=True)
                rows.append(_rate(both[..., 0, :, :], both[..., 1, :, :]))
            elif pool == CELLS:
                cells = with_all(sums[..., self.pooled, :], -1)
                rows.append(_mean(_rate(cells[..., 0, :, :], cells[..., 1, :, :]), (-3, -2))[..., None, :])
            else:
                rows.append(_mean(rate[..., self.pooled, :], -2)[..., None, :])
        return np.concatenate(rows, axis=-2)

    def clusters(self, sums: Sequence[Floats]) -> Floats:
        """Return how many clusters have a denominator, a numerator, and a denominator above it, 3 × cells and pools."""
        found = []
        for one in sums:
            part, whole = self.margins(one[:, 0]), self.margins(one[:, 1])
            found.append(np.stack([(whole > 0).sum(0), (part > 0).sum(0), (part < whole).sum(0)]))
        return with_all(np.stack(found, axis=1).astype(np.float64), 1)

    def largest(self, totals: Floats) -> Floats:
        """Return what a rate of 1 is multiplied with in every cell; in pools the mean over the relations there."""
        scale = np.ones(totals.shape)
        if self.scale is not None:
            size = len(self.scale)
            own = np.maximum(self.scale, 1.0)
            there = totals[-1, :size, -1] > 0
            scale[:, :size] = own[:, None]
            scale[:, size:] = float(own[there].mean()) if there.any() else 1.0
        return scale


def _with_intervals(
    pooling: _Pooling,
    rate: Floats,
    ends: Sequence[tuple[Floats, Floats]],
    counts: Sequence[Floats],
    clusters: Floats,
    *,
    independent: bool,
    steady: NDArray[np.bool_],
) -> Rates:
    low, high = (np.stack([end[side] for end in ends]) for side in (0, 1))
    method = np.full(rate.shape, BOOTSTRAP, dtype=object)
    part, whole = counts
    there, hit, missed = clusters
    few = steady | (hit < FEW_CLUSTERS) | (missed < FEW_CLUSTERS)
    largest = pooling.largest(whole)
    wide = wilson(np.clip(rate / largest, 0.0, 1.0) * there, there)
    low, high = np.where(few, wide[0] * largest, low), np.where(few, wide[1] * largest, high)
    method[few] = WILSON_CLUSTERS
    if independent:
        one_each = whole == there
        for number, pool in enumerate(pooling.pools, len(pooling.pooled)):
            one_each[:, number] &= pool == CASES
        plain = wilson(part, whole)
        low, high = np.where(one_each, plain[0], low), np.where(one_each, plain[1], high)
        method[one_each] = WILSON
    unknown = np.isnan(rate)
    return Rates(
        part=part,
        whole=whole,
        clusters=there,
        rate=rate,
        low=np.where(unknown, np.nan, low),
        high=np.where(unknown, np.nan, high),
        method=method,
    )


def margins(values: Floats, pooled: NDArray[np.bool_] | None = None, pools: int = 1, add: np.ufunc = np.add) -> Floats:
    """Return … × relations × severities sums with all severities, and with pools below the relations.

    Args:
        values: The sums, or maxima with ``np.maximum``.
        pooled: bool R; relations in the pools, None for all.
        pools: How many pools; they are alike.
        add: As in :meth:`Places.totals`.
    """
    levels = with_all(values, -1, add)
    chosen = levels if pooled is None else levels[..., pooled, :]
    return np.concatenate([levels, *[add.reduce(chosen, axis=-2, keepdims=True, initial=0)] * pools], axis=-2)


def table(
    names: Sequence[Mapping[str, Sequence[object]]], columns: Mapping[str, Any], keep: NDArray[np.bool_]
) -> pd.DataFrame:
    """Return one row for each cell that is kept, the last axis fastest.

    Args:
        names: For each axis its columns, with a name for each place along it.
        columns: By name: one number a cell, or what all rows share.
        keep: bool; which cells.
    """
    import pandas as pd

    at = np.nonzero(keep)
    named = {
        name: np.array([*values], dtype=object)[along]
        for axis, along in zip(names, at, strict=True)
        for name, values in axis.items()
    }
    cells = {name: value[keep] if np.ndim(value) else value for name, value in columns.items()}
    return pd.DataFrame(named | cells)


def decimals(values: ArrayLike, digits: int = 6) -> Floats:
    """Return numbers rounded as Python rounds, by their exact value; ``numpy.round`` scales them first."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.array([round(one, digits) for one in numbers.ravel().tolist()]).reshape(numbers.shape)


def _rate(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _mean(rate: Floats, axes: int | tuple[int, ...]) -> Floats:
    """Return the mean over the rates that are known, NaN where none is."""
    known = ~np.isnan(rate)
    number = known.sum(axes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(number > 0, np.where(known, rate, 0.0).sum(axes) / number, np.nan)
