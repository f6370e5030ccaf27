"""Correctness of a classifier's answers to follow-ups, for tables of attacks.

For exclusive classes each case is one decision. With several labels each label is one, so that the share of right
decisions is what the paper on attacks calls accuracy (M. Xu et al., Medical Image Analysis 2021, table 2), and the
fooling rate counts decisions too. For unlabelled images, an answer is right if it equals the answer to the source
image.
"""

from __future__ import annotations

import numpy as np

from medtest.core.deferred import pd
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

ACCURACY, DECISIONS, KEPT = "accuracy", "right decisions", "answers kept"
FLOAT_LABEL = "float_label"
AREAS = ("dataset", "relation", "severity", "auroc", "auroc_low", "auroc_high")


def graded(records: Records, place: Axes) -> Graded | None:
    """Return the correctness of the answers; None for records without any answer.

    Args:
        records: Records of one system, with follow-ups.
        place: Axes of the records.
    """
    if not has_labels(records):
        return None
    classes = classes_of(records)
    decided = decisions_of(records.followups, classes, records.classes)
    unlabelled = not bool(decided.labelled.any())
    truth, has_truth = (decided.source, decided.source_answered) if unlabelled else (decided.expected, decided.labelled)
    gradable = decided.answered & has_truth & decided.source_answered
    comparable = decided.answered & decided.source_answered
    unrounded = _unrounded(records, decided)
    measure = KEPT if unlabelled else DECISIONS if classes.multi else ACCURACY
    size = decided.sizes if classes.multi else np.ones(len(gradable))
    return Graded(
        measure=measure,
        right=_same(decided.answer, truth, decided) * gradable,
        whole=size * gradable,
        before=_same(decided.source, truth, decided) * gradable,
        changed=(size - _same(decided.answer, decided.source, decided)) * comparable,
        compared=size * comparable,
        unrounded=_same(unrounded.answer, truth, decided) * (gradable & unrounded.answered),
        unrounded_whole=size * (gradable & unrounded.answered),
        areas=None if unlabelled else _areas(cases_of(records, place)),
    )


def _same(answer: Bools, reference: Bools, decided: Decisions) -> Floats:
    """Return the number of agreeing decisions of each case; for exclusive classes 1 or 0."""
    if not decided.classes.multi:
        return np.asarray((answer == reference).all(1), dtype=np.float64)
    return np.asarray(decided.sizes - (answer != reference).sum(1), dtype=np.float64)


def _unrounded(records: Records, decided: Decisions) -> Decisions:
    """Return the decisions on the pixels before rounding."""
    frame = records.followups
    texts = frame[FLOAT_LABEL] if FLOAT_LABEL in frame.columns else None
    columns = {LABEL: texts, "probabilities": None}
    return decisions_of(frame.assign(**columns), decided.classes, records.classes)


def _areas(cases: Cases) -> pd.DataFrame:
    """Return mean AUROC of every relation at every severity and overall, with intervals."""
    rows = []
    areas = cases.by_dataset(lambda pool: list(_areas_of(pool)))
    for relations in areas.values():
        rows += [row for area_rows in relations.values() for row in area_rows]
    return pd.DataFrame(rows, columns=list(AREAS))


def _areas_of(pool: CellPool) -> list[tuple[object, ...]]:
    if pool.relation == ORIGINAL:
        return []
    levels = pool.cases.place.severities
    levels_present = np.flatnonzero(pool.count()[:-1])
    rows: list[tuple[object, ...]] = []
    for number in (*(int(level) for level in levels_present), None):
        area = auroc.areas_of(pool, number, resample=True)
        if np.isnan(area.mean):
            continue
        severity = ALL if number is None else str(levels[number])
        rows.append((pool.dataset, pool.relation, severity, round(area.mean, 6), *auroc.ends(area.mean_draws)))
    return rows


def decided(records: Records, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the correctness of selected records; see :meth:`medtest.core.tasks.roles.Scoring.decided`."""
    decisions = decisions_of(frame, classes_of(records), records.classes)
    gradable = decisions.answered & decisions.labelled
    value = np.where(gradable, decisions.right_share, np.nan)
    texts = {"answer": frame[LABEL].astype(object), "expected": frame[EXPECTED].astype(object)}
    return pd.DataFrame({"value": value, **texts, **_told_apart(decisions)}, index=frame.index)


def _told_apart(decisions: Decisions) -> dict[str, Floats]:
    """Return the numbers of positives and detected positives of each case, and the same for negatives; float64 N.

    For exclusive classes every class but the first is positive, and a case is one decision.
    """
    true, answer = decisions.expected, decisions.answer
    count = len(decisions.classes.names)
    chance = np.full(len(true), 0.5 if decisions.classes.multi else 1 / max(count, 2))
    if not decisions.classes.multi:
        positive, flagged = true[:, 1:].any(axis=1), answer[:, 1:].any(axis=1)
        counts = (positive, positive & flagged, ~positive, ~positive & answer[:, 0])
        names = ("positives", "found", "negatives", "cleared")
        columns = {name: np.asarray(count_values, np.float64) for name, count_values in zip(names, counts, strict=True)}
        return {**columns, "chance": chance}
    positives, hits = true.sum(axis=1), (true & answer).sum(axis=1)
    misses = (answer & ~true).sum(axis=1)
    negatives = decisions.sizes - positives
    return {
        "positives": positives.astype(np.float64),
        "found": hits.astype(np.float64),
        "negatives": np.asarray(negatives, np.float64),
        "cleared": np.asarray(negatives - misses, np.float64),
        "chance": chance,
    }
