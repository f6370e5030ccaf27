"""Flip probabilities as heat maps: types down, difficulties or systems across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.report.figures import shade
from medtest.report.heat import percent, rows_of
from medtest.results.efr import ALL, OVERALL
from medtest.results.labels.flips import AUTO
from medtest.results.labels.label_tables import LabelTables

if TYPE_CHECKING:
    from medtest.report.material import Material

_MEAN = "mean of the types"


def severity_heat(found: LabelTables) -> list[dict[str, Any]]:
    """Return the heat map of types and difficulties, or nothing where there is one difficulty."""
    rows = _rows(found)
    levels = sorted({level for _, level in rows} - {ALL}, key=int)
    if len(levels) < 2:
        return []
    return [
        _heat(
            "By difficulty",
            "Flip probability, interval, sequences.",
            [(f"difficulty {level}" if level != ALL else "all", rows, level) for level in (*levels, ALL)],
            _groups(found),
        )
    ]


def system_heat(materials: Sequence[Material]) -> list[dict[str, Any]]:
    """Return the heat map of types and systems, or nothing where no system saw a sequence.

    Args:
        materials: One for each system.
    """
    known = [(one.system, one.tables.labels) for one in materials if one.tables.labels is not None]
    columns = [(name, _rows(found), ALL) for name, found in known if not found.flips.empty]
    if not columns:
        return []
    phantom = any(found.phantom for _, found in known)
    lead = f"{'Phantom images. ' if phantom else ''}Flip probability, interval, sequences; all difficulties."
    groups = {name: group for _, found in known for name, group in _groups(found).items()}
    return [_heat("Flip probability", lead, columns, groups)]


def _rows(found: LabelTables) -> dict[tuple[str, str], Mapping[Any, Any]]:
    table: list[dict[Any, Any]] = found.flips.to_dict("records")
    return {
        (str(row["relation"]), str(row["severity"])): row
        for row in table
        if row["dataset"] == ALL and row["rule"] == AUTO
    }


def _groups(found: LabelTables) -> dict[str, str]:
    table = found.classification
    return dict(zip(table["relation"].astype(str), table["group"].astype(str), strict=True))


def _heat(
    title: str,
    lead: str,
    columns: Sequence[tuple[str, Mapping[tuple[str, str], Mapping[Any, Any]], str]],
    groups: Mapping[str, str],
) -> dict[str, Any]:
    names = [name for name in dict.fromkeys(name for _, rows, _ in columns for name, _ in rows) if name != OVERALL]
    names = sorted(names, key=lambda name: groups.get(name, ""))
    found = rows_of(
        [*names, OVERALL],
        groups,
        title=title,
        lead=lead,
        columns=[name for name, _, _ in columns],
        cells=lambda relation: [_cell(rows.get((relation, level))) for _, rows, level in columns],
    )
    for row in found["rows"]:
        row["name"] = _MEAN if row["name"] == OVERALL else row["name"].replace("_", " ")
    return found


def _cell(row: Mapping[Any, Any] | None) -> dict[str, Any]:
    if row is None or row["fp"] != row["fp"]:
        empty = "" if row is None else "no comparison"
        return {"background": "#ffffff", "colour": "#5c6370", "value": "", "empty": empty, "lines": [], "title": ""}
    background, colour = shade(100 * row["fp"])
    return {
        "background": background,
        "colour": colour,
        "value": percent(100 * row["fp"]),
        "lines": [f"{100 * row['ci_low']:.1f}\N{EN DASH}{100 * row['ci_high']:.1f}", f"{row['sequences']:,}"],
        "title": f"{row['errors']:,} frames are errors, {row['skipped']:,} skipped",
        "empty": "",
    }
