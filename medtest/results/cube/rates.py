"""Rates with intervals, over cells and over pools of cells.

There are three kinds of pool: ``cases`` takes all cases together; ``cells`` is the mean of the cells, each one relation
on one data set; ``mean`` is the mean of the relations over all data sets. Cells without a case are in no mean.

Each draw resamples the clusters (seeds, patients) of each data set with replacement, with all their cases, which gives
pools their own intervals. If fewer than ten clusters have a hit, or fewer than ten a miss, Wilson's interval is used
instead, with every cluster counted as one case, since resampling cannot produce events it has not seen. A rate in [0,
1] varies no more than a binary value of the same mean, so this interval is conservative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.deferred import pd
from medtest.results.cube.axes import Floats, Places, with_all
from medtest.results.cube.intervals import FEW_CLUSTERS, joined, percentile_interval, wilson

CASES, CELLS, MEAN = "cases", "cells", "mean"
WILSON, WILSON_CLUSTERS, BOOTSTRAP = "wilson", "wilson_clusters", "cluster_bootstrap"


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Rates and their intervals, (data sets + all) × (relations + pools) × (severities + all) each.

    Attributes:
        part: Numerators.
        whole: Denominators.
        clusters: Clusters with a denominator.
        rate: ``part / whole`` or a mean of such rates; NaN without a denominator, as are the following.
        low: Lower end of the 95 % interval.
        high: Upper end.
        method: Method of the interval.
    """

    part: Floats
    whole: Floats
    clusters: Floats
    rate: Floats
    low: Floats
    high: Floats
    method: NDArray[np.object_]

    def row(self, at: tuple[int, ...]) -> dict[str, Any]:
        """Return a cell as columns of a table: counts, and the error-finding rate with its interval, in percent."""
        return {
            "cases": int(self.whole[at]),
            "clusters": int(self.clusters[at]),
            "violations": int(self.part[at]),
            "efr_percent": round(100 * float(self.rate[at]), 4),
            "ci_low": round(100 * float(self.low[at]), 4),
            "ci_high": round(100 * float(self.high[at]), 4),
            "ci_method": self.method[at],
        }

    def difference(self, at: tuple[int, ...], base: tuple[int, ...]) -> tuple[float, float, float]:
        """Return the rate of a cell minus that of another, and the ends of an interval joined from both intervals."""
        (rate, ends), (rate0, ends0) = (
            (float(self.rate[cell]), (float(self.low[cell]), float(self.high[cell]))) for cell in (at, base)
        )
        return rate - rate0, *joined(rate, ends, rate0, ends0)


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
    """Return the rates of every cell of relations × severities, and of pools. Clusters are drawn only where needed.

    Args:
        place: Places of the N cases; the shape has two axes.
        part: N numerators in [0, whole].
        whole: N denominators.
        pools: Pools of relations to append: ``cases``, ``cells``, ``mean``.
        pooled: bool R; relations in the pools, None for all.
        independent: If True, cells with one case per cluster get Wilson's interval without a bootstrap.
        resampled: bool (relations + pools) × (severities + all); the others are not resampled and get Wilson's interval
            with every cluster counted as one case. None resamples all; otherwise only pools of ``cases`` are allowed.
        scale: Factor for the rates of each relation; None for 1.
    """
    pooling = _Pooling(pools, np.ones(place.shape[0], bool) if pooled is None else pooled, scale)
    sums = place.sums(part, whole)
    totals = np.stack([block.sum(0) for block in sums])
    sets = [[number] for number in range(len(sums))]
    sets.append(sets[0] if len(sums) == 1 else [number for (number,) in sets])
    rate = np.stack([pooling.rates(totals[numbers]) for numbers in sets])
    counts = [with_all(pooling.margins(totals[:, which]), 0) for which in (0, 1)]
    steady = np.zeros(rate.shape[1:], bool) if resampled is None else ~resampled
    wilsons = _wilsons(pooling, rate, counts, pooling.clusters(sums), independent=independent, steady=steady)
    drawn_for = (wilsons.method == BOOTSTRAP) & ~np.isnan(rate)
    if resampled is None:
        ends = _ends(place, pooling, sums, sets, drawn_for)
    else:
        ends = _ends_of_some(place, [pooling.margins(block) for block in sums], sets, drawn_for.any(0))
    low, high = (np.stack([end[side] for end in ends]) for side in (0, 1))
    return replace(wilsons, low=np.where(drawn_for, low, wilsons.low), high=np.where(drawn_for, high, wilsons.high))


def _ends(
    place: Places,
    pooling: _Pooling,
    sums: Sequence[Floats],
    sets: Sequence[Sequence[int]],
    chosen: NDArray[np.bool_],
) -> list[tuple[Floats, Floats]]:
    """Return the ends of selected rates and pools of any kind for each set of data sets; NaN for the others.

    Args:
        place: Places of the cases.
        pooling: The pools.
        sums: clusters × 2 × cells of each data set.
        sets: Indices of the data sets.
        chosen: Mask of the selected rates, sets × cells and pools.
    """
    ends = [(np.full(mask.shape, np.nan), np.full(mask.shape, np.nan)) for mask in chosen]
    drawn = place.drawn(sums) if chosen.any() else []
    for (low, high), numbers, mask in zip(ends, sets, chosen, strict=True):
        if len(sums) == 1 and low is not ends[0][0]:  # all data sets are the only one
            low[:], high[:] = ends[0]
        elif mask.any():
            draws = pooling.rates(np.stack([drawn[n] for n in numbers], axis=1))
            low[mask], high[mask] = percentile_interval(draws[:, mask])
    return ends


def _ends_of_some(
    place: Places, sums: Sequence[Floats], sets: Sequence[Sequence[int]], chosen: NDArray[np.bool_]
) -> list[tuple[Floats, Floats]]:
    """Return the ends of selected rates for each set of data sets; NaN for the others.

    Args:
        place: Places of the cases.
        sums: clusters × 2 × cells and pools of each data set.
        sets: Indices of the data sets.
        chosen: Mask of the selected cells and pools.
    """
    ends = [(np.full(chosen.shape, np.nan), np.full(chosen.shape, np.nan)) for _ in sets]
    if chosen.any():
        drawn = place.drawn([block[..., chosen] for block in sums])
        for (low, high), numbers in zip(ends, sets, strict=True):
            part, whole = np.sum([drawn[number] for number in numbers], axis=0).swapaxes(0, 1)
            low[chosen], high[chosen] = percentile_interval(_rate(part, whole))
    return ends


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
                pooled = together[..., self.pooled, :].sum(-2, keepdims=True)
                rows.append(_rate(pooled[..., 0, :, :], pooled[..., 1, :, :]))
            elif pool == CELLS:
                cells = with_all(sums[..., self.pooled, :], -1)
                rows.append(_mean(_rate(cells[..., 0, :, :], cells[..., 1, :, :]), (-3, -2))[..., None, :])
            else:
                rows.append(_mean(rate[..., self.pooled, :], -2)[..., None, :])
        return np.concatenate(rows, axis=-2)

    def clusters(self, sums: Sequence[Floats]) -> Floats:
        """Return the numbers of clusters with a denominator, with a numerator, and with a smaller numerator.

        The result is 3 × cells and pools.
        """
        counts = []
        for block in sums:
            part, whole = self.margins(block[:, 0]), self.margins(block[:, 1])
            counts.append(np.stack([(whole > 0).sum(0), (part > 0).sum(0), (part < whole).sum(0)]))
        return with_all(np.stack(counts, axis=1).astype(np.float64), 1)

    def largest(self, totals: Floats) -> Floats:
        """Return the largest possible rate of every cell; in pools the mean over the relations present."""
        scale = np.ones(totals.shape)
        if self.scale is not None:
            size = len(self.scale)
            largest = np.maximum(self.scale, 1.0)
            present = totals[-1, :size, -1] > 0
            scale[:, :size] = largest[:, None]
            scale[:, size:] = float(largest[present].mean()) if present.any() else 1.0
        return scale


def _wilsons(
    pooling: _Pooling,
    rate: Floats,
    counts: Sequence[Floats],
    clusters: Floats,
    *,
    independent: bool,
    steady: NDArray[np.bool_],
) -> Rates:
    """Return rates with Wilson's intervals where these are used; ends are NaN where clusters are resampled."""
    part, whole = counts
    nonempty, hit, missed = clusters
    method = np.full(rate.shape, BOOTSTRAP, dtype=object)
    few = steady | (hit < FEW_CLUSTERS) | (missed < FEW_CLUSTERS)
    largest = pooling.largest(whole)
    wide = wilson(np.clip(rate / largest, 0.0, 1.0) * nonempty, nonempty)
    low, high = (np.where(few, end * largest, np.nan) for end in wide)
    method[few] = WILSON_CLUSTERS
    if independent:
        one_each = whole == nonempty
        for number, pool in enumerate(pooling.pools, len(pooling.pooled)):
            one_each[:, number] &= pool == CASES
        plain = wilson(part, whole)
        low, high = np.where(one_each, plain[0], low), np.where(one_each, plain[1], high)
        method[one_each] = WILSON
    unknown = np.isnan(rate)
    return Rates(
        part=part,
        whole=whole,
        clusters=nonempty,
        rate=rate,
        low=np.where(unknown, np.nan, low),
        high=np.where(unknown, np.nan, high),
        method=method,
    )


def margins(values: Floats, pooled: NDArray[np.bool_] | None = None, pools: int = 1, add: np.ufunc = np.add) -> Floats:
    """Return … × relations × severities sums with all severities together, and with pools below the relations.

    Args:
        values: Sums, or maxima with ``np.maximum``.
        pooled: bool R; relations in the pools, None for all.
        pools: Number of pools; all are equal.
        add: As in :meth:`Places.totals`.
    """
    levels = with_all(values, -1, add)
    selected = levels if pooled is None else levels[..., pooled, :]
    return np.concatenate([levels, *[add.reduce(selected, axis=-2, keepdims=True, initial=0)] * pools], axis=-2)


def table(
    names: Sequence[Mapping[str, Sequence[object]]], columns: Mapping[str, Any], keep: NDArray[np.bool_]
) -> pd.DataFrame:
    """Return one row for each selected cell, the last axis fastest.

    Args:
        names: For each axis its columns, with a label for each position.
        columns: By name: one number for each cell, or a value shared by all rows.
        keep: bool; mask of the selected cells.
    """
    at = np.nonzero(keep)
    labels = {
        name: np.array([*values], dtype=object)[along]
        for axis, along in zip(names, at, strict=True)
        for name, values in axis.items()
    }
    cells = {name: value[keep] if np.ndim(value) else value for name, value in columns.items()}
    return pd.DataFrame(labels | cells)


def decimals(values: ArrayLike, digits: int = 6) -> Floats:
    """Return numbers rounded as by Python, by their exact value; ``numpy.round`` scales them first."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.array([round(number, digits) for number in numbers.ravel().tolist()]).reshape(numbers.shape)


def _rate(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _mean(rate: Floats, axes: int | tuple[int, ...]) -> Floats:
    """Return the mean over the rates that are not NaN; NaN if all are."""
    valid = ~np.isnan(rate)
    number = valid.sum(axes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(number > 0, np.where(valid, rate, 0.0).sum(axes) / number, np.nan)
