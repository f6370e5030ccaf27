"""Area under the ROC curve by class and its mean over classes, with a bootstrap over clusters.

AUROC is the probability that a case of the class has a higher score than one without it, with ties counted half (J. A.
Hanley and B. J. McNeil, Radiology 1982). Classes without both kinds of cases have no area and are in no mean. Exclusive
classes are each compared with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.results.cube.intervals import percentile_interval
from medtest.tasks.classify.tables.cells import CellPool

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

REPLICATES = 500
"""Number of bootstrap replicates for few cases: each replicate visits all cases of every class."""
_FEWEST, _MOST_NUMBERS = 100, 5_000_000


def auroc(truth: Bools, scores: Floats) -> Floats:
    """Return the area of each class, NaN if a class has no case or no other.

    Args:
        truth: bool N×C.
        scores: float64 N×C, no NaN.
    """
    areas: Floats = weighted(truth, scores, np.ones((1, len(truth))))[0]
    return areas


def weighted(truth: Bools, scores: Floats, weights: Floats) -> Floats:
    """Return R×C areas of weighted cases.

    Args:
        truth: bool N×C.
        scores: float64 N×C, no NaN.
        weights: float64 R×N, at least 0.
    """
    areas = np.full((len(weights), truth.shape[1]), np.nan)
    for number in range(truth.shape[1]):
        if 0 < int(truth[:, number].sum()) < len(truth):
            areas[:, number] = _one(truth[:, number], scores[:, number], weights)
    return areas


def _one(truth: Bools, scores: Floats, weights: Floats) -> Floats:
    positives, negatives = np.flatnonzero(truth), np.flatnonzero(~truth)
    negatives = negatives[np.argsort(scores[negatives], kind="stable")]
    below = np.zeros((len(weights), len(negatives) + 1))  # weight of the first k negatives, by ascending score
    np.cumsum(weights[:, negatives], axis=1, out=below[:, 1:])
    beaten = [np.searchsorted(scores[negatives], scores[positives], side=side) for side in ("left", "right")]
    drawn = weights[:, positives]
    won = (drawn * (below[:, beaten[0]] + below[:, beaten[1]])).sum(1) / 2
    pairs = drawn.sum(1) * below[:, -1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pairs > 0, won / pairs, np.nan)


def mean_of_classes(areas: Floats) -> Floats:
    """Return the mean of … × C areas over the classes that have one, NaN if none has."""
    valid = ~np.isnan(areas)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(valid.any(-1), np.where(valid, areas, 0.0).sum(-1) / valid.sum(-1), np.nan)


@dataclass(frozen=True, kw_only=True)
class Area:
    """Areas of a set of cases.

    Attributes:
        per_class: float64 C.
        draws: float64 R×C on resampled clusters; R is 0 without resampling.
    """

    per_class: Floats
    draws: Floats

    @property
    def mean(self) -> float:
        """Mean over the classes with an area; NaN if none has one."""
        return float(mean_of_classes(self.per_class))

    @property
    def mean_draws(self) -> Floats:
        """Means of the draws, R."""
        return mean_of_classes(self.draws)


def areas_of(pool: CellPool, severity: int | None = None, *, resample: bool = False) -> Area:
    """Return the areas of a pool of cases, cached with the cases because several tables need them.

    Args:
        pool: The cases.
        severity: Index of the severity; None for all.
        resample: If True, draw clusters.
    """
    key = (pool.relation, pool.numbers, severity, resample)
    area: Area = pool.cases.kept(key, lambda: _areas(pool, severity, resample=resample))
    return area


def _areas(pool: CellPool, severity: int | None, *, resample: bool) -> Area:
    by_set = pool.scored(severity)
    rows = np.concatenate(by_set)
    truth, scores = pool.cases.decided.expected[rows], pool.cases.probabilities[rows]
    lacking = np.isnan(scores).any(0)  # a class that one data set does not have
    scores = np.where(lacking, 0.0, scores)
    per_class = np.where(lacking, np.nan, auroc(truth, scores))
    draws = np.zeros((0, truth.shape[1]))
    if resample and len(truth) and pool.clusters > 1:
        count = int(np.clip(_MOST_NUMBERS // len(truth), _FEWEST, REPLICATES))
        place = pool.cases.place
        weights = [
            place.resamplers[number].weights(count)[:, place.cluster[set_rows]]
            for number, set_rows in zip(pool.numbers, by_set, strict=True)
        ]
        drawn = weighted(truth, scores, np.concatenate(weights, axis=1).astype(np.float64))
        draws = np.where(lacking, np.nan, drawn)
    return Area(per_class=per_class, draws=draws)


def ends(draws: Floats) -> tuple[float | None, float | None]:
    """Return the ends of an interval of R draws, None without draws."""
    if not draws.size or np.isnan(draws).all():
        return None, None
    low, high = percentile_interval(draws)
    return round(float(low), 6), round(float(high), 6)
