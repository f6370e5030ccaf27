"""A system's cells (data set, relation, severity) under the primary criterion, and the gates on single cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from medtest.report.charts.heat import SUMS
from medtest.report.pages.material import Material
from medtest.results.gating.gates import GateResult
from medtest.results.rates import efr

Row: TypeAlias = Mapping[str, Any]
Standing: TypeAlias = Literal["mistake", "too many errors", "gate failed", "passed", "no gate"]


def standing(material: Material) -> Standing:
    """Return the outcome of a system, the most severe first, in the order of exit codes."""
    results = material.tables.gates
    if any(result.unlike for result in results):
        return "mistake"
    if material.too_many_errors:
        return "too many errors"
    if any(not result.held for result in results):
        return "gate failed"
    return "passed" if results else "no gate"


def rate_rows(material: Material) -> list[Row]:
    """Return the rows of the EFR table under the primary criterion, including margins."""
    table = material.tables.efr
    if table.empty:
        return []
    matches = efr.of_criterion(table, material.wanted.primary)
    return [{str(key): value for key, value in row.items()} for row in table.loc[matches].to_dict("records")]


def cell_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of a single data set, relation and severity."""
    return [
        row
        for row in rows
        if row["dataset"] != efr.ALL and row["relation"] not in SUMS and str(row["severity"]) != efr.ALL
    ]


def relation_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the row of each relation over all data sets and severities."""
    return [
        row
        for row in rows
        if row["dataset"] == efr.ALL and str(row["severity"]) == efr.ALL and row["relation"] not in SUMS
    ]


def gates_of_cells(
    results: Sequence[GateResult], cells: Sequence[Row]
) -> tuple[dict[tuple[str, str, str], list[GateResult]], list[GateResult]]:
    """Return the gates on exactly one cell, by cell, and all other gates.

    Args:
        results: Results of the gates.
        cells: Rows from :func:`cell_rows`.
    """
    datasets = {str(row["dataset"]) for row in cells}
    places = {_keys(row) for row in cells}
    of_one: dict[tuple[str, str, str], list[GateResult]] = {}
    others: list[GateResult] = []
    for result in results:
        gate = result.gate
        dataset = next(iter(datasets)) if gate.dataset == efr.ALL and len(datasets) == 1 else gate.dataset
        place = (dataset, gate.relation, str(gate.severity))
        if place in places and not result.unlike:
            of_one.setdefault(place, []).append(result)
        else:
            others.append(result)
    return of_one, others


def _keys(row: Row) -> tuple[str, str, str]:
    return str(row["dataset"]), str(row["relation"]), str(row["severity"])
