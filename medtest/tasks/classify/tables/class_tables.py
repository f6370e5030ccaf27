"""Class by class: confusion matrices (``tables/confusion.csv``), recall and AUROC (``tables/classes.csv``).

Both hold the source images (``original``) and every relation over all its severities. Confusion matrices exist where
exactly one class is true; with several labels an image each class is a question of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.results.columns import columns_in
from medtest.results.cube.axes import Axes, axes
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables import auroc
from medtest.tasks.classify.tables.cells import Cases, CellPool, cases_of

if TYPE_CHECKING:
    import pandas as pd

CLASS_COLUMNS = columns_in(__file__, "classes")
CONFUSION_COLUMNS = columns_in(__file__, "confusion")


def confusion_table(records: Records, place: Axes | None = None, cases: Cases | None = None) -> pd.DataFrame:
    """Return how many cases of each class got each label, zeros included, with :data:`CONFUSION_COLUMNS`.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
        cases: What :func:`medtest.tasks.classify.tables.cells.cases_of` gave for both; None makes it.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    if not records.followups.empty:
        found = cases or cases_of(records, axes(records) if place is None else place)
        if not found.classes.multi:
            rows = _rows(found, _matrix)
    return pd.DataFrame(rows, columns=list(CONFUSION_COLUMNS))


def _rows(found: Cases, make: Callable[[CellPool], Iterator[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return what is made of every pool, data set by data set."""
    return [
        row for made in found.by_dataset(lambda pool: list(make(pool))).values() for one in made.values() for row in one
    ]


def _matrix(pool: CellPool) -> Iterator[dict[str, Any]]:
    decided = pool.cases.decided
    names = decided.classes.names
    counts = np.zeros((len(names), len(names)), np.int64)
    rows = np.concatenate(pool.rows)
    rows = rows[decided.answered[rows] & decided.labelled[rows]]
    np.add.at(counts, (decided.expected[rows].argmax(1), decided.answer[rows].argmax(1)), 1)
    for i, expected in enumerate(names):
        for j, answered in enumerate(names):
            head = {"dataset": pool.dataset, "relation": pool.relation}
            yield {**head, "expected": expected, "answered": answered, "cases": int(counts[i, j])}


def class_table(records: Records, place: Axes | None = None, cases: Cases | None = None) -> pd.DataFrame:
    """Return recall, precision and AUROC of every class, with :data:`CLASS_COLUMNS`; intervals resample clusters.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
        cases: What :func:`medtest.tasks.classify.tables.cells.cases_of` gave for both; None makes it.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    if not records.followups.empty:
        found = cases or cases_of(records, axes(records) if place is None else place)
        rows = _rows(found, _classes)
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
        known = not single and expected[number] > 0
        low, high = auroc.ends(recall_draws[:, number]) if known else (None, None)
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
