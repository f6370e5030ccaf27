"""Labels of multi-label classifiers under attack: ``tables/attack_labels.csv``.

A label is positive if its probability exceeds a threshold. Records have decisions at 0.5; other thresholds are applied
to their probabilities here (the paper's code uses 0.5 under GAP and 0.7 under PGD), so that threshold sweeps run no
system. ``right`` is the share of images whose decision on the label is as expected, ``fooling`` the share whose
decision differs from that on the unchanged image. Intervals are Wilson's with every cluster counted as one case, which
is conservative; AUROC is independent of the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from medtest.core.deferred import pd
from medtest.results.attacks.settings import has_attacks
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Axes
from medtest.results.cube.rates import rates
from medtest.results.published.retraining import ORIGINAL
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables import auroc
from medtest.tasks.classify.tables.cells import Cases, CellPool
from medtest.tasks.classify.tables.decisions import Bools, Floats, probabilities_of

COLUMNS = columns_in(__file__, "attack_labels")


def attack_label_table(records: Records, place: Axes, cases: Cases, thresholds: Sequence[float]) -> pd.DataFrame:
    """Return the table, with :data:`COLUMNS`; empty for exclusive classes or without a relation that needs a system.

    Args:
        records: Records of one system.
        place: Axes of the records.
        cases: Cases of the records.
        thresholds: Probability thresholds, in (0, 1).
    """
    rows: list[dict[str, Any]] = []
    if cases.classes.multi and has_attacks(records):
        probabilities = probabilities_of(records.followups, cases.classes)
        source_probabilities = _of_sources(records, probabilities_of(records.sources, cases.classes))
        expected = cases.decided.expected[-len(probabilities) :]
        labelled = cases.decided.labelled[-len(probabilities) :]
        areas = _areas(cases)
        for threshold in thresholds:
            for number, label in enumerate(cases.classes.names):
                valid = ~np.isnan(probabilities[:, number]) & ~np.isnan(source_probabilities[:, number])
                yes, then = probabilities[:, number] > threshold, source_probabilities[:, number] > threshold
                rows += _rows(
                    place,
                    {"threshold": threshold, "label": label},
                    right=(yes == expected[:, number]) & valid & labelled,
                    judged=valid & labelled,
                    changed=(yes != then) & valid,
                    compared=valid,
                    positive=expected[:, number] & valid & labelled,
                    areas={key: float(values[number]) for key, values in areas.items()},
                )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rows(
    place: Axes,
    head: dict[str, Any],
    *,
    right: Bools,
    judged: Bools,
    changed: Bools,
    compared: Bools,
    positive: Bools,
    areas: dict[tuple[str, str, str], float],
) -> list[dict[str, Any]]:
    nowhere = np.zeros((len(place.relations), len(place.severities) + 1), bool)
    correct = rates(place, right, judged, resampled=nowhere)
    fooled = rates(place, changed, compared, resampled=nowhere)
    positives = place.totals(positive)
    rows = []
    for dataset, name in enumerate((*place.datasets, ALL)):
        for relation, title in enumerate(place.relations):
            for level, severity in enumerate(place.severities):
                at = (dataset, relation, level)
                if not fooled.whole[at]:
                    continue
                rows.append(
                    {
                        "dataset": name,
                        "relation": title,
                        "severity": str(severity),
                        **head,
                        "cases": int(correct.whole[at]),
                        "positives": int(positives[at]),
                        "right": round(float(correct.rate[at]), 6),
                        "right_low": round(float(correct.low[at]), 6),
                        "right_high": round(float(correct.high[at]), 6),
                        "fooling": round(float(fooled.rate[at]), 6),
                        "fooling_low": round(float(fooled.low[at]), 6),
                        "fooling_high": round(float(fooled.high[at]), 6),
                        "auroc": round(areas.get((name, title, str(severity)), float("nan")), 6),
                    }
                )
    return rows


def _of_sources(records: Records, probabilities: Floats) -> Floats:
    """Return the probabilities of each follow-up's source, NaN without one."""
    keys = ["dataset", "seed_id", "item"]
    row_of = {
        key: row for row, key in enumerate(zip(*(records.sources[name].astype(str) for name in keys), strict=True))
    }
    owners = zip(*(records.followups[name].astype(str) for name in keys), strict=True)
    at = np.array([row_of.get(key, -1) for key in owners], np.int64)
    padded = np.vstack([probabilities, np.full((1, probabilities.shape[1]), np.nan)])
    return np.asarray(padded[at], np.float64)


def _areas(cases: Cases) -> dict[tuple[str, str, str], Floats]:
    """Return the areas of all classes by data set, relation and severity."""

    def made(pool: CellPool) -> dict[str, Floats]:
        if pool.relation == ORIGINAL:
            return {}
        levels = cases.place.severities
        nonempty = np.flatnonzero(pool.count()[:-1])
        return {str(levels[number]): auroc.areas_of(pool, int(number)).per_class for number in nonempty}

    return {
        (dataset, relation, severity): areas
        for dataset, relations in cases.by_dataset(made).items()
        for relation, levels in relations.items()
        for severity, areas in levels.items()
    }
