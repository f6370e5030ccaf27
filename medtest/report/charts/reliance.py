"""The report's section on controls: picture of consistency and reliance, table, banner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.core.deferred import pd
from medtest.report.charts.heat import rows_of
from medtest.report.charts.quadrants import Spot, quadrant_panel
from medtest.results.cube.axes import ALL, OVERALL
from medtest.results.rates.reliance import CONSISTENT, EXPECTED, INPUTS, QUADRANTS, RELIANT, warned

PICTURE = "reliance.svg"
"""File of the picture beside the report."""
_CORNERS = ((False, True), (False, False), (True, True), (True, False))
_TITLE = "Consistency under harmless changes and reliance on the evidence"


def reliance(table: pd.DataFrame, system: str) -> dict[str, Any] | None:
    """Return the template's data, None without controls.

    Args:
        table: ``tables/reliance.csv``.
        system: Name of the system.
    """
    rows = rows_of(table, dataset=ALL)
    if not rows:
        return None
    return {
        "words": _words(next((row for row in rows if row["control"] == OVERALL), None), system),
        "picture": picture(table),
        "rows": [_row(row) for row in rows],
        "banners": [_banner(row) for row in rows_of(warned(table))],
        "chance": _chance(rows),
    }


def summary_lines(table: pd.DataFrame) -> list[str]:
    """Return consistency and reliance over all controls, and the banners, in one line each.

    Args:
        table: ``tables/reliance.csv``.
    """
    rows = rows_of(table, dataset=ALL)
    figures = [_figures(row) for row in rows if row["control"] == OVERALL]
    lines = [f"{line[:-1]}; tables/reliance.csv." for line in figures if line]
    return lines + [_banner(row) for row in rows_of(warned(table))]


def picture(table: pd.DataFrame) -> str:
    """Return the picture of a system as SVG, "" if it has no control with both figures.

    Args:
        table: ``tables/reliance.csv``.
    """
    rows = [row for row in rows_of(table, dataset=ALL) if _known(row, "reliance") and _known(row, "consistency")]
    spots = [
        Spot(
            name=_name(row),
            x=_ends(row, "consistency"),
            y=_ends(row, "reliance"),
            main=row["control"] == OVERALL,
        )
        for row in rows
    ]
    if not spots:
        return ""
    return quadrant_panel(
        _TITLE,
        spots,
        names=("consistency under harmless changes", "reliance on the evidence"),
        borders=(CONSISTENT, RELIANT),
        corners=[QUADRANTS[sides] for sides in _CORNERS],
    )


def _known(row: Mapping[Any, Any], name: str) -> bool:
    value = float(row[f"{name}_percent"])
    return value == value


def _ends(row: Mapping[Any, Any], name: str) -> tuple[float, float, float]:
    value, low, high = (float(row[f"{name}_{end}"]) for end in ("percent", "low", "high"))
    return value, low, high


def _name(row: Mapping[Any, Any]) -> str:
    if row["control"] == OVERALL:
        return "all controls"
    name = str(row["control"]).replace("_", " ")
    return f"{name}: {row['removed']}" if row["removed"] in INPUTS else name


def _shown(row: Mapping[Any, Any], name: str) -> tuple[str, str]:
    if not _known(row, name):
        return "", ""
    value, low, high = _ends(row, name)
    return f"{value:.1f} %", f"{low:.1f} to {high:.1f}"


def _row(row: Mapping[Any, Any]) -> dict[str, Any]:
    sham = float(row["sham_kept_percent"])
    return {
        "name": _name(row),
        "cases": int(row["cases"]),
        "kept": _shown(row, "kept"),
        "chance": _shown(row, "chance")[0],
        "sham": f"{sham:.1f} %" if sham == sham else "",
        "reliance": _shown(row, "reliance"),
        "quadrant": row["quadrant"],
        "out": f"{int(row['errors'])} / {int(row['skipped'])}",
    }


def _words(overall: Mapping[Any, Any] | None, system: str) -> str:
    text = (
        "A control removes what the answer should rest on: the answer must change. A system that ignores its input is "
        "perfectly consistent, but keeps its answers here. "
    )
    figures = "" if overall is None else _figures(overall)
    return f"{text}{system}: {figures}" if figures else f"{text}{system} has too few judged cases for both figures."


def _figures(overall: Mapping[Any, Any]) -> str:
    """Return consistency, reliance and quadrant as words, "" if one of the figures is unknown."""
    if not (_known(overall, "consistency") and _known(overall, "reliance")):
        return ""
    consistency, reliance_words = ("{} ({} %)".format(*_shown(overall, name)) for name in ("consistency", "reliance"))
    quadrant = str(overall["quadrant"])
    place = f"{quadrant}." if quadrant in QUADRANTS.values() else "an interval crosses the border of two quadrants."
    return f"consistency {consistency}, reliance {reliance_words}: {place}"


def _banner(row: Mapping[Any, Any]) -> str:
    kept, chance, excess = (_shown(row, name) for name in ("kept", "chance", "excess"))
    return (
        f"{_name(row).capitalize()}: {kept[0]} of {int(row['cases']):,} answers are kept, {chance[0]} would be by "
        f"chance; the difference is {excess[0]} ({excess[1]})."
    )


def _chance(rows: list[dict[Any, Any]]) -> str:
    sources = {str(row["chance_from"]) for row in rows if _known(row, "chance")}
    if not sources:
        return "No agreement by chance is known, because no other case was shown."
    if sources == {EXPECTED}:
        return "By chance: how often the expected answers of two cases agree."
    return "By chance: how often the system's own answers to two cases agree, because no answers are expected."
