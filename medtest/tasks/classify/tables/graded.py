"""How right a classifier's answers to follow-ups are, for tables of attacks.

One label an image: a decision a case. Several: one a label, so that the share of right decisions is what the paper on
attacks calls accuracy (M. Xu et al., Medical Image Analysis 2021, table 2), and a fooling rate counts decisions too.
Where nobody labelled the images, an answer is right that is the answer to the source image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtest.core.tasks.results import Graded
from medtest.results.cube.axes import ALL, Axes
from medtest.results.published.retraining import ORIGINAL
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables import auroc
from medtest.tasks.classify.tables.cells import Cases, CellPool, cases_of
from medtest.tasks.classify.tables.decisions import (
    EXPECTED,
    LABEL,
    Bools,
    Decisions,
    Floats,
    classes_of,
    decisions_of,
    has_labels,
)

if TYPE_CHECKING:
    import pandas as pd

ACCURACY, DECISIONS, KEPT = "accuracy", "right decisions", "answers kept"
FLOAT_LABEL = "float_label"
AREAS = ("dataset", "relation", "severity", "auroc", "auroc_low", "auroc_high")


def graded(records: Records, place: Axes) -> Graded | None:
    """Return how right the answers are; None of records without any answer.

    Args:
        records: Records of one system, with follow-ups.
        place: Their axes.
    """
    if not has_labels(records):
        return None
    classes = classes_of(records)
    decided = decisions_of(records.followups, classes, records.classes)
    unlabelled = not bool(decided.labelled.any())
    truth, known = (decided.source, decided.source_answered) if unlabelled else (decided.expected, decided.labelled)
    judged = decided.answered & known & decided.source_answered
    compared = decided.answered & decided.source_answered
    unrounded = _unrounded(records, decided)
    measure = KEPT if unlabelled else DECISIONS if classes.multi else ACCURACY
    size = decided.sizes if classes.multi else np.ones(len(judged))
    return Graded(
        measure=measure,
        right=_same(decided.answer, truth, decided) * judged,
        whole=size * judged,
        before=_same(decided.source, truth, decided) * judged,
        changed=(size - _same(decided.answer, decided.source, decided)) * compared,
        compared=size * compared,
        unrounded=_same(unrounded.answer, truth, decided) * (judged & unrounded.answered),
        unrounded_whole=size * (judged & unrounded.answered),
        areas=None if unlabelled else _areas(cases_of(records, place)),
    )


def _same(one: Bools, other: Bools, decided: Decisions) -> Floats:
    """Return how many decisions of each case agree; of one label an image 1 or 0."""
    if not decided.classes.multi:
        return np.asarray((one == other).all(1), dtype=np.float64)
    return np.asarray(decided.sizes - (one != other).sum(1), dtype=np.float64)


def _unrounded(records: Records, decided: Decisions) -> Decisions:
    """Return what was decided on the pixels before they were rounded."""
    frame = records.followups
    texts = frame[FLOAT_LABEL] if FLOAT_LABEL in frame.columns else None
    columns = {LABEL: texts, "probabilities": None}
    return decisions_of(frame.assign(**columns), decided.classes, records.classes)


def _areas(cases: Cases) -> pd.DataFrame:
    """Return mean AUROC of every relation at every severity and at all, with intervals."""
    import pandas as pd

    rows = []
    found = cases.by_dataset(lambda pool: list(_areas_of(pool)))
    for relations in found.values():
        rows += [row for made in relations.values() for row in made]
    return pd.DataFrame(rows, columns=list(AREAS))


def _areas_of(pool: CellPool) -> list[tuple[object, ...]]:
    if pool.relation == ORIGINAL:
        return []
    levels = pool.cases.place.severities
    there = np.flatnonzero(pool.count()[:-1])
    rows: list[tuple[object, ...]] = []
    for number in (*(int(one) for one in there), None):
        area = auroc.areas_of(pool, number, resample=True)
        if np.isnan(area.mean):
            continue
        severity = ALL if number is None else str(levels[number])
        rows.append((pool.dataset, pool.relation, severity, round(area.mean, 6), *auroc.ends(area.mean_draws)))
    return rows


def decided(records: Records, frame: pd.DataFrame) -> pd.DataFrame:
    """Return how right each of some records is; see :meth:`medtest.core.tasks.base.Task.decided`."""
    import pandas as pd

    found = decisions_of(frame, classes_of(records), records.classes)
    known = found.answered & found.labelled
    value = np.where(known, found.right_share, np.nan)
    texts = {"answer": frame[LABEL].astype(object), "expected": frame[EXPECTED].astype(object)}
    return pd.DataFrame({"value": value, **texts, **_told_apart(found)}, index=frame.index)


def _told_apart(found: Decisions) -> dict[str, Floats]:
    """Return how many positives each case has and how many are found, and the same of negatives; float64 N.

    Of exclusive classes every one but the first is positive, and a case is one decision.
    """
    true, given = found.expected, found.answer
    count = len(found.classes.names)
    chance = np.full(len(true), 0.5 if found.classes.multi else 1 / max(count, 2))
    if not found.classes.multi:
        positive, flagged = true[:, 1:].any(axis=1), given[:, 1:].any(axis=1)
        counts = (positive, positive & flagged, ~positive, ~positive & given[:, 0])
        names = ("positives", "found", "negatives", "cleared")
        columns = {name: np.asarray(one, np.float64) for name, one in zip(names, counts, strict=True)}
        return {**columns, "chance": chance}
    positives, hits = true.sum(axis=1), (true & given).sum(axis=1)
    misses = (given & ~true).sum(axis=1)
    negatives = found.sizes - positives
    return {
        "positives": positives.astype(np.float64),
        "found": hits.astype(np.float64),
        "negatives": np.asarray(negatives, np.float64),
        "cleared": np.asarray(negatives - misses, np.float64),
        "chance": chance,
    }
