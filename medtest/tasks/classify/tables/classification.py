"""Performance of a classifier under each relation: ``tables/classification.csv``.

The measures of the MedTest slides (accuracy, Cohen's κ, weighted F1) with the error-finding rate; with several labels,
label share and mean AUROC. Rows are the source images (``original``), every relation at every severity, and two
averages over relations: ``average_without_original``, as in the slides' tables of RQ1, and ``average_with_original``,
as in those of further training. ``unchanged`` is in neither.

Intervals are 95 % percentile bootstraps that resample clusters, the same draws for all rows; AUROC has one over all
severities. ``p_mcnemar`` is exact (:mod:`medtest.results.cube.paired`); ``p_holm`` is corrected over all relations of
the same data set and severity. ``efr_source_percent``: the label changed. ``efr_truth_percent``: wrong although the
source was right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Axes, axes
from medtest.results.cube.paired import clustered, holm
from medtest.results.published.retraining import ORIGINAL, WITHOUT
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables import auroc
from medtest.tasks.classify.tables.cells import Cases, CellPool, cases_of
from medtest.tasks.classify.tables.decisions import Floats
from medtest.tasks.classify.tables.sums import SumColumns, measures

WITH = "average_with_original"
AVERAGES = (WITHOUT, WITH)
COLUMNS = columns_in(__file__, "classification")
MEASURES = columns_in(__file__, "measures")
"""Performance measures; each with its interval."""
_TEXTS = ("dataset", "relation", "group", "severity")
_AVERAGED = ("accuracy", "kappa", "f1", "label_share", "auroc")


@dataclass(kw_only=True)
class _Row:
    """One relation on one data set.

    Attributes:
        values: Measures, severities + all each.
        draws: Measures on resampled clusters, replicates × severities + all each.
        cells: Cells of the table, by index of the severity.
    """

    values: dict[str, Floats]
    draws: dict[str, Floats]
    cells: dict[int, dict[str, Any]] = field(default_factory=dict)


def classification_table(records: Records, place: Axes | None = None, cases: Cases | None = None) -> pd.DataFrame:
    """Return the table, with exactly :data:`COLUMNS`; measures are fractions, empty if not meaningful.

    Args:
        records: Records of one system.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
        cases: Cases from :func:`medtest.tasks.classify.tables.cells.cases_of`; None computes them.
    """
    if records.followups.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    cells = axes(records) if place is None else place
    rows = list(_Table(cases_of(records, cells) if cases is None else cases).rows())
    _correct(rows)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    counts = dict.fromkeys(("became_wrong", "became_right"), "Int64")
    numbers = [name for name in COLUMNS if name not in (*counts, *_TEXTS, "cases", "errors", "skipped")]
    return table.astype({**counts, **dict.fromkeys(numbers, "float64")})


def _correct(rows: Sequence[dict[str, Any]]) -> None:
    """Add Holm's correction to the p values of each data set and severity."""
    families: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("p_mcnemar") is not None and row["relation"] != UNCHANGED:
            families.setdefault((row["dataset"], row["severity"]), []).append(row)
    for family in families.values():
        for row, value in zip(family, holm([row["p_mcnemar"] for row in family]), strict=True):
            row["p_holm"] = float(f"{value:.6g}")


class _Table:
    """Rows of the table, by relation.

    Args:
        cases: All cases of one system.
    """

    def __init__(self, cases: Cases) -> None:
        self._cases = cases
        self._all = len(cases.place.severities)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of each data set, and of all together."""
        place = self._cases.place
        groups = dict(zip(place.relations, place.groups, strict=True))
        for dataset, by_relation in self._cases.by_dataset(self._row).items():
            for relation, row in by_relation.items():
                for number, cell in row.cells.items():
                    yield {**self._head(dataset, relation, groups[relation], number), **cell}
            yield from self._averages(dataset, by_relation)

    def _head(self, dataset: str, relation: str, group: str, number: int) -> dict[str, Any]:
        severity = ALL if number == self._all else str(self._cases.place.severities[number])
        return {"dataset": dataset, "relation": relation, "group": group, "severity": severity}

    def _row(self, pool: CellPool) -> _Row:
        layout, totals = self._cases.layout, pool.totals
        row = _Row(values=measures(totals, layout), draws=measures(pool.draws, layout))
        row.values["auroc"], row.draws["auroc"] = self._areas(pool)
        executed, errors, skipped = (pool.count(where) for where in (None, self._cases.error, self._cases.skipped))
        levels = [self._all] if pool.original else [*np.flatnonzero(executed[:-1]), self._all]
        for number in levels:
            cell: dict[str, Any] = {"cases": int(layout.get(totals[number], "cases"))}
            cell |= _plain({name: row.values[name][number] for name in MEASURES})
            if pool.clusters > 1:
                cell |= _ends({name: row.draws[name][:, number] for name in MEASURES}, row, number)
            if not pool.original:
                cell |= _against_source(
                    layout, totals[number], np.concatenate([block[:, number] for block in pool.sums])
                )
            row.cells[int(number)] = {**cell, "errors": int(errors[number]), "skipped": int(skipped[number])}
        return row

    def _areas(self, pool: CellPool) -> tuple[Floats, Floats]:
        """Return mean AUROC at every severity and overall, and its draws, which exist only for ``all``."""
        levels = [] if pool.original else list(range(self._all))
        overall = auroc.areas_of(pool, resample=True)
        values = np.full(self._all + 1, np.nan)
        values[levels] = [auroc.areas_of(pool, number).mean for number in levels]
        values[-1] = overall.mean
        drawn = overall.mean_draws
        draws = np.full((len(drawn), self._all + 1), np.nan)
        draws[:, -1] = drawn
        return values, draws

    def _averages(self, dataset: str, by_relation: Mapping[str, _Row]) -> Iterator[dict[str, Any]]:
        original = by_relation.get(ORIGINAL)
        for name in AVERAGES:
            for number in range(self._all + 1):
                members = [
                    (row, number)
                    for relation, row in by_relation.items()
                    if relation not in (ORIGINAL, UNCHANGED) and number in row.cells
                ]
                if not members or (name == WITH and original is None):
                    continue
                if name == WITH and original is not None:
                    members.insert(0, (original, self._all))
                yield {**self._head(dataset, name, ALL, number), **self._average(members)}

    def _average(self, members: Sequence[tuple[_Row, int]]) -> dict[str, Any]:
        """Return the mean over members, each with equal weight, of measures that every member has."""
        values = {name: np.array([row.values[name][number] for row, number in members]) for name in _AVERAGED}
        averages: dict[str, Any] = {"cases": sum(row.cells[number]["cases"] for row, number in members)}
        averages |= {"errors": sum(row.cells[number]["errors"] for row, number in members)}
        averages |= {"skipped": sum(row.cells[number]["skipped"] for row, number in members)}
        averages |= _plain({name: value.mean() for name, value in values.items()})
        for name in _AVERAGED:
            drawn = [row.draws[name][:, number] for row, number in members]
            fewest = min(len(replicates) for replicates in drawn)
            if f"{name}_low" in members[-1][0].cells[members[-1][1]] and averages[name] is not None:
                mean = np.mean([replicates[:fewest] for replicates in drawn], axis=0)
                averages[f"{name}_low"], averages[f"{name}_high"] = auroc.ends(mean)
        return averages


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if np.isnan(value) else round(float(value), 6) for name, value in values.items()}


def _ends(draws: Mapping[str, Floats], row: _Row, number: int) -> dict[str, Any]:
    intervals: dict[str, Any] = {}
    for name, values in draws.items():
        if not np.isnan(row.values[name][number]):
            intervals[f"{name}_low"], intervals[f"{name}_high"] = auroc.ends(values)
    return intervals


def _against_source(layout: SumColumns, total: Floats, per_cluster: Floats) -> dict[str, Any]:
    """Return the changes between source and follow-up.

    Args:
        layout: Layout of the counts.
        total: Sums of all clusters, width.
        per_cluster: clusters × width.
    """
    worse, better, pairs, compared, changed, right = (
        int(layout.get(total, name))
        for name in ("became_wrong", "became_right", "pairs", "compared", "changed", "source_right")
    )
    columns: dict[str, Any] = {}
    if pairs:
        p = clustered(np.rint(layout.get(per_cluster, "became_wrong") - layout.get(per_cluster, "became_right")))
        columns = {"became_wrong": worse, "became_right": better, "p_mcnemar": float(f"{p:.6g}")}
    if compared:
        columns["efr_source_percent"] = round(100 * changed / compared, 4)
    if right:
        columns["efr_truth_percent"] = round(100 * worse / right, 4)
    return columns
