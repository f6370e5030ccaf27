"""Heat maps of flip probabilities, with rows of types and columns of difficulties or systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtest.report.charts.heat import blank, filled, heat_map, rows_of
from medtest.results.rates.efr import ALL, OVERALL
from medtest.tasks.classify.tables.flips import AUTO
from medtest.tasks.classify.tables.results import LabelTables

_MEAN = "mean of the types"


def severity_heat(tables: LabelTables) -> list[dict[str, Any]]:
    """Return the heat map of types and difficulties, or an empty list for a single difficulty."""
    rows = _rows(tables)
    levels = sorted({level for _, level in rows} - {ALL}, key=int)
    if len(levels) < 2:
        return []
    return [
        _heat(
            "By difficulty",
            "Flip probability, interval, sequences.",
            [(f"difficulty {level}" if level != ALL else "all", rows, level) for level in (*levels, ALL)],
            _groups(tables),
        )
    ]


def system_heat(systems: Sequence[tuple[str, LabelTables]]) -> list[dict[str, Any]]:
    """Return the heat map of types and systems, or an empty list if no system saw a sequence.

    Args:
        systems: Names of the systems, with their tables.
    """
    columns = [(name, _rows(tables), ALL) for name, tables in systems if not tables.flips.empty]
    if not columns:
        return []
    phantom = any(tables.phantom for _, tables in systems)
    lead = f"{'Phantom images. ' if phantom else ''}Flip probability, interval, sequences; all difficulties."
    groups = {name: group for _, tables in systems for name, group in _groups(tables).items()}
    return [_heat("Flip probability", lead, columns, groups)]


def _rows(tables: LabelTables) -> dict[tuple[str, str], Mapping[Any, Any]]:
    rows = rows_of(tables.flips, dataset=ALL, rule=AUTO)
    return {(str(row["relation"]), str(row["severity"])): row for row in rows}


def _groups(tables: LabelTables) -> dict[str, str]:
    table = tables.classification
    return dict(zip(table["relation"].astype(str), table["group"].astype(str), strict=True))


def _heat(
    title: str,
    lead: str,
    columns: Sequence[tuple[str, Mapping[tuple[str, str], Mapping[Any, Any]], str]],
    groups: Mapping[str, str],
) -> dict[str, Any]:
    names = [name for name in dict.fromkeys(name for _, rows, _ in columns for name, _ in rows) if name != OVERALL]
    return heat_map(
        [*sorted(names, key=lambda name: groups.get(name, "")), OVERALL],
        groups,
        title=title,
        lead=lead,
        columns=[name for name, _, _ in columns],
        cells=lambda relation: [_cell(rows.get((relation, level))) for _, rows, level in columns],
        shown=lambda name: _MEAN if name == OVERALL else name.replace("_", " "),
    )


def _cell(row: Mapping[Any, Any] | None) -> dict[str, Any]:
    if row is None or row["fp"] != row["fp"]:
        return blank("" if row is None else "no comparison")
    lines = [f"{100 * row['ci_low']:.1f}\N{EN DASH}{100 * row['ci_high']:.1f}", f"{row['sequences']:,}"]
    return filled(100 * row["fp"], lines, title=f"{row['errors']:,} frames are errors, {row['skipped']:,} skipped")
