"""Class by class: confusion matrices (``tables/confusion.csv``), recall and AUROC (``tables/classes.csv``).

Both hold the source images (``original``) and every relation over all its severities. Confusion matrices exist where
exactly one class is true; with several labels an image each class is a question of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.results import auroc, columns
from medtest.results.cube.axes import Axes, axes
from medtest.results.efr import ALL
from medtest.results.label_cells import Cases, Chosen, cases_of
from medtest.results.label_sums import SumColumns
from medtest.results.records_io import Records
from medtest.results.retraining import ORIGINAL

if TYPE_CHECKING:
    import pandas as pd

CLASS_COLUMNS = columns.CLASSES
CONFUSION_COLUMNS = columns.CONFUSION


def confusion_table(records: Records, place: Axes | None = None) -> pd.DataFrame:
    """Return how many cases of each class got each label, zeros included, with :data:`CONFUSION_COLUMNS`.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    if not records.followups.empty:
        found = cases_of(records, axes(records) if place is None else place)
        if not found.classes.multi:
            rows = [
                row for dataset, relation, parts in _pools(found) for row in _matrix(found, dataset, relation, parts)
            ]
    return pd.DataFrame(rows, columns=list(CONFUSION_COLUMNS))


def _pools(found: Cases) -> Iterator[tuple[str, str, list[Chosen]]]:
    """Yield data set, relation and cases of every row that has a case."""
    sets = range(len(found.place.datasets))
    wanted = {**{found.place.datasets[number]: [number] for number in sets}, ALL: list(sets)}
    for dataset, numbers in wanted.items():
        for relation in (ORIGINAL, *found.place.relations):
            parts = [found.choose(relation, number) for number in numbers]
            if any(part.size for part in parts):
                yield dataset, relation, parts


def _matrix(found: Cases, dataset: str, relation: str, parts: Sequence[Chosen]) -> Iterator[dict[str, Any]]:
    size = len(found.classes.names)
    counts = np.zeros((size, size), np.int64)
    for part in parts:
        decided = part.side.decided
        rows = part.rows[decided.answered[part.rows] & decided.labelled[part.rows]]
        np.add.at(counts, (decided.expected[rows].argmax(1), decided.answer[rows].argmax(1)), 1)
    for i, expected in enumerate(found.classes.names):
        for j, answered in enumerate(found.classes.names):
            head = {"dataset": dataset, "relation": relation}
            yield {**head, "expected": expected, "answered": answered, "cases": int(counts[i, j])}


def class_table(records: Records, place: Axes | None = None, cases: Cases | None = None) -> pd.DataFrame:
    """Return recall, precision and AUROC of every class, with :data:`CLASS_COLUMNS`; intervals resample clusters.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
        cases: What :func:`medtest.results.label_cells.cases_of` gave for both; None makes it.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    if not records.followups.empty:
        found = cases or cases_of(records, axes(records) if place is None else place)
        rows = [row for dataset, relation, parts in _pools(found) for row in _classes(found, dataset, relation, parts)]
    table = pd.DataFrame(rows, columns=list(CLASS_COLUMNS))
    return table.astype(dict.fromkeys(("recall", "recall_low", "recall_high", "precision"), "float64"))


def _classes(found: Cases, dataset: str, relation: str, parts: Sequence[Chosen]) -> Iterator[dict[str, Any]]:
    layout = SumColumns(classes=len(found.classes.names), multi=found.classes.multi)
    per_cluster = [part.per_cluster(layout)[:, -1:] for part in parts]
    drawn = np.sum([part.draw(sums)[:, 0] for part, sums in zip(parts, per_cluster, strict=True)], axis=0)
    total = np.sum([sums.sum(0)[0] for sums in per_cluster], axis=0)
    hit, expected, answered = layout.per_class(total)
    hit_draws, expected_draws, _ = layout.per_class(drawn)
    with np.errstate(invalid="ignore", divide="ignore"):
        recalls, precision, recall_draws = hit / expected, hit / answered, hit_draws / expected_draws
    area = auroc.areas_of(parts, resample=True)
    single = sum(part.clusters for part in parts) < 2
    for number, name in enumerate(found.classes.names):
        known = not single and expected[number] > 0
        low, high = auroc.ends(recall_draws[:, number]) if known else (None, None)
        area_low, area_high = auroc.ends(area.draws[:, number])
        yield {
            "dataset": dataset,
            "relation": relation,
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
