"""Tables by class: confusion matrices (``tables/confusion.csv``), recall and AUROC (``tables/classes.csv``).

Both cover the source images (``original``) and every relation over all its severities. Confusion matrices exist for
exclusive classes only; with several labels each class is a separate decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import Axes, axes
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables import auroc
from medtest.tasks.classify.tables.cells import Cases, CellPool, cases_of

CLASS_COLUMNS = columns_in(__file__, "classes")
CONFUSION_COLUMNS = columns_in(__file__, "confusion")


def confusion_table(records: Records, place: Axes | None = None, cases: Cases | None = None) -> pd.DataFrame:
    """Return the number of cases of each class with each label, including zeros, with :data:`CONFUSION_COLUMNS`.

    Args:
        records: Records of one system.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
        cases: Cases from :func:`medtest.tasks.classify.tables.cells.cases_of`; None computes them.
    """
    rows: list[dict[str, Any]] = []
    if not records.followups.empty:
        selected = cases or cases_of(records, axes(records) if place is None else place)
        if not selected.classes.multi:
            rows = _rows(selected, _matrix)
    return pd.DataFrame(rows, columns=list(CONFUSION_COLUMNS))


def _rows(cases: Cases, make: Callable[[CellPool], Iterator[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the rows of every pool, ordered by data set."""
    return [
        row
        for by_relation in cases.by_dataset(lambda pool: list(make(pool))).values()
        for group in by_relation.values()
        for row in group
    ]


def _matrix(pool: CellPool) -> Iterator[dict[str, Any]]:
    decided = pool.cases.decided
    names = decided.classes.names
    counts = np.zeros((len(names), len(names)), np.int64)
    rows = np.concatenate(pool.rows)
    rows = rows[decided.answered[rows] & decided.labelled[rows]]
    np.add.at(counts, (decided.expected[rows].argmax(1), decided.answer[rows].argmax(1)), 1)
    for i, expected in enumerate(names):
        for j, label in enumerate(names):
            head = {"dataset": pool.dataset, "relation": pool.relation}
            yield {**head, "expected": expected, "answered": label, "cases": int(counts[i, j])}


def class_table(records: Records, place: Axes | None = None, cases: Cases | None = None) -> pd.DataFrame:
    """Return recall, precision and AUROC of every class, with :data:`CLASS_COLUMNS`; intervals resample clusters.

    Args:
        records: Records of one system.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
        cases: Cases from :func:`medtest.tasks.classify.tables.cells.cases_of`; None computes them.
    """
    rows: list[dict[str, Any]] = []
    if not records.followups.empty:
        selected = cases or cases_of(records, axes(records) if place is None else place)
        rows = _rows(selected, _classes)
    table = pd.DataFrame(rows, columns=list(CLASS_COLUMNS))
    return table.astype(dict.fromkeys(("recall", "recall_low", "recall_high", "precision"), "float64"))


def _classes(pool: CellPool) -> Iterator[dict[str, Any]]:
    layout, total = pool.cases.layout, pool.totals[-1]
    hit, expected, answered = layout.per_class(total)
    hit_draws, expected_draws, _ = layout.per_class(pool.draws[:, -1])
    with np.errstate(invalid="ignore", divide="ignore"):
        recalls, precision, recall_draws = hit / expected, hit / answered, hit_draws / expected_draws
    area = auroc.areas_of(pool, resample=True)
    single = pool.clusters < 2
    for number, name in enumerate(pool.cases.classes.names):
        has_interval = not single and expected[number] > 0
        low, high = auroc.ends(recall_draws[:, number]) if has_interval else (None, None)
        area_low, area_high = auroc.ends(area.draws[:, number])
        yield {
            "dataset": pool.dataset,
            "relation": pool.relation,
            "class": name,
            "cases": int(layout.get(total, "cases")),
            "positives": int(expected[number]),
            "answered_positive": int(answered[number]),
            "true_positives": int(hit[number]),
            "recall": np.round(recalls[number], 6),
            "recall_low": low,
            "recall_high": high,
            "precision": np.round(precision[number], 6),
            "auroc": np.round(area.per_class[number], 6),
            "auroc_low": area_low,
            "auroc_high": area_high,
        }
