"""Fixed classifier that tells two sorts of patches apart, and its area under the ROC curve with an interval.

The classifier is logistic regression with a ridge penalty on standardised features and their squares. It has no setting
that a result could be tuned with. Folds never divide a group (an image, a video), and only pairs of patches of one fold
are compared, since scores of classifiers that saw different patches do not share a scale. The division into folds is
repeated, and the areas are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.results.cube.intervals import percentile_ends
from medtest.results.cube.resampling import generator

Rows: TypeAlias = NDArray[np.float64]

FOLDS = 5
REPEATS = 5
"""Divisions into folds: one alone moves the area of sorts that are alike by several hundredths."""
RIDGE = 10.0
"""Penalty on the squared weights, in patches: weights stay small for a few hundred patches."""
CLIP = 4.0
"""Standard deviations beyond which a feature is cut off."""
REPLICATES = 1000
FEWEST_GROUPS = 2
"""Least groups of each sort."""


@dataclass(frozen=True, kw_only=True)
class Auc:
    """Area under the ROC curve; NaN if there were too few groups.

    Attributes:
        value: The area: 0.5 if the sorts cannot be told apart, 1 if always.
        low: Lower end of the 95 % interval, a percentile bootstrap over groups.
        high: Upper end.
        counts: Patches of both sorts, the first one's first.
        groups: Groups of both sorts.
    """

    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    counts: tuple[int, int] = (0, 0)
    groups: tuple[int, int] = (0, 0)


class Patches:
    """Features of two sorts of patches, gathered image by image."""

    def __init__(self) -> None:
        self.features: list[Rows] = []
        self.labels: list[NDArray[np.int64]] = []
        self.groups: list[str] = []

    def add(self, features: Rows, label: int, group: str) -> None:
        """Add the patches of one image.

        Args:
            features: float N×K.
            label: 1 for the sort that the classifier looks for, else 0.
            group: Its image or video.
        """
        if len(features):
            self.features.append(np.asarray(features, np.float64))
            self.labels.append(np.full(len(features), label))
            self.groups += [group] * len(features)

    def count(self, label: int) -> int:
        """Return the number of patches of a sort."""
        return int(sum(np.count_nonzero(labels == label) for labels in self.labels))


class Scored:
    """Scores that classifiers gave to patches they had not seen.

    Args:
        patches: The patches.
        name: Seeds the division into folds.
    """

    def __init__(self, patches: Patches, name: str) -> None:
        self.labels = np.concatenate(patches.labels) if patches.labels else np.zeros(0, np.int64)
        self.names, self.group = np.unique(np.array(patches.groups, dtype=object).astype(str), return_inverse=True)
        self.counts = (int(np.count_nonzero(self.labels == 1)), int(np.count_nonzero(self.labels == 0)))
        sides = [set(self.group[self.labels == label].tolist()) for label in (1, 0)]
        self.groups = (len(sides[0]), len(sides[1]))
        self.usable = min(self.groups) >= FEWEST_GROUPS
        if not self.usable:
            return
        rng = generator("realism", name)
        self.folds = [_folds(sides, rng)[self.group] for _ in range(REPEATS)]
        features = np.concatenate(patches.features)
        self.scores = [_held_out(features, self.labels, fold) for fold in self.folds]
        self._ranked = [
            (self.labels[own], self.group[own], np.unique(scores[own], return_inverse=True)[1])
            for fold, scores in zip(self.folds, self.scores, strict=True)
            for own in (fold == place for place in range(int(fold.max()) + 1))
        ]

    def auc(self, weights: Rows | None = None) -> float:
        """Return the area over pairs within folds, of all divisions.

        Args:
            weights: How often each group of ``names`` counts; once if None.
        """
        each = np.ones(len(self.names)) if weights is None else weights
        won, pairs = np.sum([_pairs(*ranked, each) for ranked in self._ranked], axis=0)
        return float(won / pairs) if pairs else float("nan")


def _pairs(
    labels: NDArray[np.int64], group: NDArray[np.int64], rank: NDArray[np.int64], each: Rows
) -> tuple[float, float]:
    """Return the weight of pairs whose first sort scores higher (half for equal scores), and of all pairs.

    Args:
        labels: Sorts of the patches of one fold.
        group: Their groups.
        rank: Ranks of their scores, equal for equal scores.
        each: How often each group counts.
    """
    weights = each[group]
    first, second = weights * (labels == 1), weights * (labels == 0)
    at = np.bincount(rank, second)
    below = np.cumsum(at) - at / 2
    return float(first @ below[rank]), float(first.sum() * second.sum())


def _held_out(features: Rows, labels: NDArray[np.int64], fold: NDArray[np.int64]) -> Rows:
    """Return the score of every patch by the classifier of the other folds."""
    scores = np.zeros(len(features))
    for place in range(int(fold.max()) + 1):
        held = fold == place
        weights, mean, sd = fit(features[~held], labels[~held])
        scores[held] = _spread(features[held], mean, sd) @ weights[1:] + weights[0]
    return scores


def auc_of(patches: Patches, name: str) -> Auc:
    """Return the area under the ROC curve of a classifier on patches it was not trained on.

    Args:
        patches: Patches of both sorts.
        name: Seeds folds and bootstrap, so that a repeated command gives the same figures.
    """
    scored = Scored(patches, name)
    if not scored.usable:
        return Auc(counts=scored.counts, groups=scored.groups)
    rng = generator("realism", name, "bootstrap")
    count = len(scored.names)
    draws = [scored.auc(_drawn(rng, count)) for _ in range(REPLICATES)]
    low, high = percentile_ends(draws)
    return Auc(value=scored.auc(), low=low, high=high, counts=scored.counts, groups=scored.groups)


def auc_difference(first: Patches, second: Patches, name: str) -> tuple[Auc, Auc, Auc]:
    """Return the areas of two classifiers and their difference; groups of one name are drawn together."""
    both = [Scored(patches, f"{name}/{number}") for number, patches in enumerate((first, second))]
    if not all(scored.usable for scored in both):
        of_each = [Auc(counts=scored.counts, groups=scored.groups) for scored in both]
        return of_each[0], of_each[1], Auc()
    names = np.unique(np.concatenate([scored.names for scored in both]))
    places = [np.searchsorted(names, scored.names) for scored in both]
    rng = generator("realism", name, "bootstrap")
    draws = np.empty((REPLICATES, 2))
    for number in range(REPLICATES):
        weights = _drawn(rng, len(names))
        draws[number] = [scored.auc(weights[place]) for scored, place in zip(both, places, strict=True)]
    values = [scored.auc() for scored in both]
    result = []
    for column, scored in enumerate(both):
        low, high = percentile_ends(draws[:, column])
        result.append(Auc(value=values[column], low=low, high=high, counts=scored.counts, groups=scored.groups))
    low, high = percentile_ends(draws[:, 0] - draws[:, 1])
    return result[0], result[1], Auc(value=values[0] - values[1], low=low, high=high)


def fit(features: Rows, labels: NDArray[np.int64]) -> tuple[Rows, Rows, Rows]:
    """Fit logistic regression by Newton's method; both sorts weigh the same.

    Args:
        features: float N×K.
        labels: 1 or 0, N.

    Returns:
        Weights (the constant first, then one of every feature and of every square), and the features' means and
        standard deviations.
    """
    mean, sd = features.mean(axis=0), features.std(axis=0)
    sd = np.where(sd > 1e-9, sd, 1.0)
    rows = np.hstack([np.ones((len(features), 1)), _spread(features, mean, sd)])
    share = np.array([np.count_nonzero(labels == 0), np.count_nonzero(labels == 1)])
    case = (len(labels) / (2.0 * np.maximum(share, 1)))[labels]
    penalty = np.full(rows.shape[1], RIDGE)
    penalty[0] = 1e-6
    weights = np.zeros(rows.shape[1])
    for _ in range(25):
        probability = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (case * (probability - labels)) + penalty * weights
        curve = (rows * (case * np.maximum(probability * (1 - probability), 1e-6))[:, None]).T @ rows
        step = np.linalg.solve(curve + np.diag(penalty), slope)
        weights = weights - step
        if np.abs(step).max() < 1e-6:
            break
    return weights, mean, sd


def _spread(features: Rows, mean: Rows, sd: Rows) -> Rows:
    """Return standardised features and their squares."""
    plain = np.clip((features - mean) / sd, -CLIP, CLIP)
    return np.hstack([plain, (plain**2 - 1) / CLIP])


def _folds(sides: list[set[int]], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of every group; groups with the same sorts are dealt out one by one."""
    count = min(FOLDS, *(len(side) for side in sides))
    everyone = sorted(sides[0] | sides[1])
    fold = np.zeros(len(everyone), np.int64)
    for kind in ((True, True), (True, False), (False, True)):
        members = [group for group in everyone if (group in sides[0], group in sides[1]) == kind]
        for place, member in enumerate(rng.permutation(np.array(members, np.int64))):
            fold[member] = place % count
    return fold


def _drawn(rng: np.random.Generator, count: int) -> Rows:
    return np.bincount(rng.integers(count, size=count), minlength=count).astype(np.float64)
