"""Rates of sequences by type and severity with intervals, all types together.

One draw resamples the clusters (seeds, patients) of each data set with replacement and takes all their sequences of
every type along, so that the mean of the types has an interval of its own. Where fewer than ten clusters flipped, or
fewer than ten did not, resampling cannot invent what it has not seen: Wilson's interval stands there, every cluster
counted as one case. A rate in [0, 1] varies no more than a yes or no of the same mean, so that this errs towards being
wide (see :mod:`medtest.results.statistics`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.results import statistics
from medtest.results.cells import Axes

if TYPE_CHECKING:
    from medtest.results.flips import Sequences

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FlipRates:
    """Rates and their intervals, each data sets + all × relations + overall × severities + all."""

    rate: Floats
    low: Floats
    high: Floats


def rates(
    place: Axes,
    *,
    cell: NDArray[np.int64],
    dataset: NDArray[np.int64],
    cluster: NDArray[np.int64],
    part: Floats,
    whole: Floats,
    factor: Floats | None = None,
) -> FlipRates:
    """Return part / whole of every cell; of ``overall`` the mean of the relations'.

    Args:
        place: The axes.
        cell: int64 S; relation number × severities + severity number.
        dataset: int64 S; data set's number.
        cluster: int64 S; cluster's number within its data set.
        part: float64 S; numerators in [0, whole].
        whole: float64 S; denominators.
        factor: Multiplies the rates of each relation; None for 1.
    """
    sums = [_per_cluster(place, number, cell, dataset, cluster, part, whole) for number in range(len(place.datasets))]
    draws = [_drawn(place, number, one) for number, one in enumerate(sums)]
    totals = np.stack([one.sum(0) for one in sums])
    rate = _rates(np.concatenate([totals, totals.sum(0, keepdims=True)]), factor)
    ends = [statistics.percentile_interval(_rates(one, factor)) for one in [*draws, sum(draws[1:], draws[0])]]
    low, high = np.stack([end[0] for end in ends]), np.stack([end[1] for end in ends])
    clusters, hit, clean = _cluster_counts(sums)
    few = (hit < statistics.FEW_CLUSTERS) | (clean < statistics.FEW_CLUSTERS)
    scale = np.ones(rate.shape) if factor is None else _scales(rate.shape, factor, totals)
    wide = statistics.wilson(np.clip(rate / scale, 0.0, 1.0) * clusters, clusters)
    low, high = np.where(few, wide[0] * scale, low), np.where(few, wide[1] * scale, high)
    return FlipRates(rate=rate, low=np.where(np.isnan(rate), np.nan, low), high=np.where(np.isnan(rate), np.nan, high))


def counts(place: Axes, found: Sequences, values: ArrayLike) -> Floats:
    """Return sums over the cells with all their margins; ``overall`` is the sum over the relations."""
    weights = np.asarray(values, dtype=np.float64)
    size = place.shape[0] * place.shape[1]
    flat = np.bincount(found.dataset * size + found.cell, weights=weights, minlength=len(place.datasets) * size)
    per_set = flat.reshape(len(place.datasets), *place.shape)
    both = np.concatenate([per_set, per_set.sum(0, keepdims=True)])
    levels = np.concatenate([both, both.sum(-1, keepdims=True)], axis=-1)
    return np.concatenate([levels, levels.sum(-2, keepdims=True)], axis=-2)


def largest(place: Axes, found: Sequences, values: ArrayLike) -> Floats:
    """Return maxima over the cells with all their margins, 0 where there is no sequence."""
    per_set = np.zeros((len(place.datasets), *place.shape))
    relation, severity = np.divmod(found.cell, place.shape[1])
    np.maximum.at(per_set, (found.dataset, relation, severity), np.asarray(values, dtype=np.float64))
    both = np.concatenate([per_set, per_set.max(0, keepdims=True)])
    levels = np.concatenate([both, both.max(-1, keepdims=True)], axis=-1)
    return np.concatenate([levels, levels.max(-2, keepdims=True)], axis=-2)


def _per_cluster(
    place: Axes,
    number: int,
    cell: NDArray[np.int64],
    dataset: NDArray[np.int64],
    cluster: NDArray[np.int64],
    part: Floats,
    whole: Floats,
) -> Floats:
    """Return clusters × 2 × relations × severities sums of one data set: numerators, denominators."""
    here = dataset == number
    cells = place.shape[0] * place.shape[1]
    flat = cluster[here] * cells + cell[here]
    size = place.clusters[number] * cells
    both = [np.bincount(flat, weights=values[here], minlength=size) for values in (part, whole)]
    return np.stack([one.reshape(-1, *place.shape) for one in both], axis=1)


def _drawn(place: Axes, number: int, sums: Floats) -> Floats:
    """Return replicates × 2 × relations × severities sums of resampled clusters."""
    flat = sums.reshape(len(sums), -1).astype(np.float32)
    return place.resamplers[number].sums(flat).astype(np.float64).reshape(-1, 2, *place.shape)


def _rates(sums: Floats, factor: Floats | None) -> Floats:
    """Return … × relations + overall × severities + all rates of … × 2 × relations × severities sums."""
    levels = np.concatenate([sums, sums.sum(-1, keepdims=True)], axis=-1)
    part, whole = levels[..., 0, :, :], levels[..., 1, :, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where(whole > 0, part / whole, np.nan)
        if factor is not None:
            rate = rate * factor[:, None]
        known = ~np.isnan(rate)
        mean = np.where(known.any(-2), np.where(known, rate, 0.0).sum(-2) / known.sum(-2), np.nan)
    return np.concatenate([rate, mean[..., None, :]], axis=-2)


def _scales(shape: tuple[int, ...], factor: Floats, totals: Floats) -> Floats:
    """Return what a rate of 1 is multiplied with in every cell; of ``overall`` the mean over the relations there."""
    scale = np.ones(shape)
    scale[..., :-1, :] = np.maximum(factor, 1.0)[:, None]
    there = totals[:, 1].sum((0, 2)) > 0
    scale[..., -1, :] = float(np.maximum(factor, 1.0)[there].mean()) if there.any() else 1.0
    return scale


def _cluster_counts(sums: list[Floats]) -> tuple[Floats, Floats, Floats]:
    """Return clusters with a comparison, with a flip, and with a comparison that is none, with all margins."""
    found = []
    for one in sums:
        levels = np.concatenate([one, one.sum(-1, keepdims=True)], axis=-1)
        whole = np.concatenate([levels, levels.sum(-2, keepdims=True)], axis=-2)
        part, all_ = whole[:, 0], whole[:, 1]
        found.append(np.stack([(all_ > 0).sum(0), (part > 0).sum(0), (part < all_).sum(0)]))
    per_set = np.stack(found, axis=1).astype(np.float64)
    both = np.concatenate([per_set, per_set.sum(1, keepdims=True)], axis=1)
    return both[0], both[1], both[2]
