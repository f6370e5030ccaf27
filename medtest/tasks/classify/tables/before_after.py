"""Effect of further training on a classifier: the table of :mod:`change` with its measures.

Accuracy, Cohen's κ and weighted F1 (with several labels: all labels right, share of right decisions, weighted F1, mean
AUROC) before and after, on the same follow-ups, paired by case; intervals of the differences resample clusters. As in
the slides, ``average`` includes the originals and ``relations`` does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from medtest.core.cases import Classes
from medtest.core.deferred import pd
from medtest.core.errors import OutputProblem
from medtest.results.before_after import change as before_after
from medtest.results.before_after.change import SharedPlaces, Sides, difference_rows, joined, placed, unanswered
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables import auroc
from medtest.tasks.classify.tables.decisions import (
    EXPECTED,
    LABEL,
    PROBABILITIES,
    Decisions,
    Floats,
    classes_of,
    decisions_of,
    probabilities_of,
)
from medtest.tasks.classify.tables.sums import Integers, SumColumns, measures, rows_of

SCORES = ("accuracy", "kappa", "f1")
MULTI_SCORES = ("accuracy", "label_share", "f1", "auroc")
_COLUMNS = (LABEL, EXPECTED, PROBABILITIES)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedLabels(SharedPlaces):
    """Cases of labelled seeds that were answered before and after.

    Attributes:
        classes: The classes.
        before: Decisions before.
        after: Decisions after.
        scores_before: Probabilities before, N×C, NaN if missing.
        scores_after: Probabilities after.
        unpaired: Number of cases left out because one side has no answer or no record.
    """

    classes: Classes
    before: Decisions
    after: Decisions
    scores_before: Floats
    scores_after: Floats
    unpaired: int


def pair(before: Records, after: Records, *, order: Sequence[str] = ()) -> PairedLabels:
    """Pair the cases of two classifiers.

    Args:
        before: Records of the network before training.
        after: Records of the network after training.
        order: Relation ids in the desired order.

    Raises:
        OutputProblem: The systems share no case, an image differs between them, or no seed has an expected label.
    """
    cases, single = joined(before, after, _COLUMNS)
    side_classes = [classes_of(side) for side in (before, after)]
    names = dict.fromkeys(name for classes in side_classes for name in classes.names)
    classes = Classes(names=tuple(names), multi=any(side.multi for side in side_classes))
    sides = [_side(cases, when) for when in ("before", "after")]
    recorded = {**before.classes, **after.classes}
    decided = [decisions_of(side, classes, recorded) for side in sides]
    usable = decided[0].answered & decided[1].answered
    if not (usable & decided[0].labelled).any():
        raise OutputProblem("before and after cannot be compared: no answered case has an expected label")
    lost = unanswered(cases.loc[~usable])
    usable &= decided[0].labelled
    frames = [side.loc[usable].reset_index(drop=True) for side in sides]
    first, second = (decisions_of(side, classes, recorded) for side in frames)
    return PairedLabels(
        **vars(placed(cases.loc[usable], order)),
        classes=classes,
        before=first,
        after=second,
        scores_before=probabilities_of(frames[0], classes),
        scores_after=probabilities_of(frames[1], classes),
        unpaired=lost + single,
    )


def _side(cases: pd.DataFrame, when: str) -> pd.DataFrame:
    names = {f"{name}_{when}": name for name in (*_COLUMNS, "verdict")}
    return cases[["dataset", *names]].rename(columns=names)


def table_of(paired: PairedLabels, family: str = "") -> pd.DataFrame:
    """Return the long table, with the columns of :data:`medtest.results.before_after.change.COLUMNS`.

    Args:
        paired: Paired cases.
        family: Network whose published figures are included (``agdn``, ``dsinet``).
    """
    scores = MULTI_SCORES if paired.classes.multi else SCORES
    sums = _sums(paired)
    drawn = paired.drawn(sums)
    by_dataset = {
        dataset: _measured(paired, numbers, [sums[number] for number in numbers], [drawn[number] for number in numbers])
        for dataset, numbers in paired.pools
    }
    rows: list[dict[str, object]] = []
    for score in scores:
        for dataset, by_score in by_dataset.items():
            rows += difference_rows(paired.rows, by_score[score], score=score, family=family, dataset=dataset)
    return pd.DataFrame(rows, columns=list(before_after.COLUMNS))


def _measured(
    paired: PairedLabels, numbers: Sequence[int], sums: Sequence[Floats], drawn: Sequence[Floats]
) -> dict[str, Sides]:
    """Return every measure over several data sets.

    Args:
        paired: Paired cases.
        numbers: Indices of the data sets.
        sums: Their sums by cluster.
        drawn: Their sums over resampled clusters.
    """
    layout = _layout(paired)
    totals, draws = np.sum([block.sum(0) for block in sums], axis=0), np.sum(drawn, axis=0)
    clusters = sum(len(block) for block in sums)
    before, after = (measures(totals[side], layout) for side in (0, 1))
    resampled = [measures(draws[:, side], layout) for side in (0, 1)]
    cases = layout.get(totals[0], "cases")
    by_measure = {
        name: Sides(
            before=before[name],
            after=after[name],
            differences=resampled[1][name] - resampled[0][name],
            cases=cases,
            clusters=clusters,
        )
        for name in before
    }
    if paired.classes.multi:
        by_measure["auroc"] = _areas(paired, numbers, cases, clusters)
    return by_measure


def _layout(paired: PairedLabels) -> SumColumns:
    return SumColumns(classes=len(paired.classes.names), multi=paired.classes.multi)


def _sums(paired: PairedLabels) -> list[Floats]:
    """Return clusters × 2 (before, after) × rows × width sums of each data set."""
    every = np.arange(len(paired.cell))
    sides = [paired.sums(*rows_of(side, every, paired=False).T) for side in (paired.before, paired.after)]
    return [np.stack(pair_sums, axis=1).swapaxes(2, 3) for pair_sums in zip(*sides, strict=True)]


def _areas(paired: PairedLabels, numbers: Sequence[int], cases: Floats, clusters: int) -> Sides:
    """Return mean AUROC before and after."""
    areas = [list(_area(paired, numbers, row)) for row in range(len(paired.rows))]
    before, after = (np.array([area[side] for area in areas], dtype=np.float64) for side in (0, 1))
    differences = np.stack([np.asarray(area[2]) for area in areas], axis=1)
    return Sides(before=before, after=after, differences=differences, cases=cases, clusters=clusters)


def _area(paired: PairedLabels, numbers: Sequence[int], row: int) -> Iterator[Floats | float]:
    """Yield mean AUROC of one row before, after, and draws of the difference with the same clusters for both."""
    rows = [np.flatnonzero((paired.dataset == number) & (paired.cell == row)) for number in numbers]
    selected: Integers = np.concatenate(rows)
    weights = np.concatenate(
        [
            paired.resamplers[number].weights(auroc.REPLICATES)[:, paired.cluster[set_rows]]
            for number, set_rows in zip(numbers, rows, strict=True)
        ],
        axis=1,
    ).astype(np.float64)
    truth = paired.before.expected[selected]
    draws = []
    for scores in (paired.scores_before[selected], paired.scores_after[selected]):
        if not len(selected) or np.isnan(scores).any():
            yield float("nan")
            draws.append(np.full(auroc.REPLICATES, np.nan))
            continue
        yield float(auroc.mean_of_classes(auroc.auroc(truth, scores)))
        draws.append(auroc.mean_of_classes(auroc.weighted(truth, scores, weights)))
    yield draws[1] - draws[0]
