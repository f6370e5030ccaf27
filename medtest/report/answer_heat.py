"""Flips as heat maps: questions down; relations, or systems, across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.report.figures import shade
from medtest.report.heat import percent
from medtest.results.answers.answer_tables import AnswerTables
from medtest.results.cube.axes import ALL, OVERALL

if TYPE_CHECKING:
    from medtest.report.material import Material

SIGNIFICANT = 0.05
_EMPTY: dict[str, Any] = {"background": "#ffffff", "colour": "#5c6370", "value": "", "lines": [], "title": ""}


def question_words(item: str) -> str:
    """Return a question's short name as people read it."""
    return "all questions" if item == ALL else item.replace("_", " ")


def flip_heat(found: AnswerTables) -> dict[str, Any] | None:
    """Return the heat map of questions × relations, asking again first; None where nothing was judged."""
    table: list[dict[Any, Any]] = found.flips.to_dict("records")
    if not table:
        return None
    cells = {(str(row["item"]), str(row["relation"])): row for row in table}
    items = list(dict.fromkeys(str(row["item"]) for row in table))
    relations = [name for name in dict.fromkeys(str(row["relation"]) for row in table) if name != OVERALL]
    again = any(int(row["unchanged_cases"]) for row in table)
    words = dict(zip(found.flips["item"], found.flips["question"], strict=True))
    return {
        "columns": [
            *(["asked again"] if again else []),
            *(name.replace("_", " ") for name in relations),
            "all relations",
        ],
        "rows": [
            {
                "name": question_words(item),
                "words": str(words.get(item, "")),
                "sum": item == ALL,
                "cells": [
                    *([_floor(cells, item)] if again else []),
                    *(_cell(cells.get((item, relation))) for relation in (*relations, OVERALL)),
                ],
            }
            for item in items
        ],
    }


def _floor(cells: Mapping[tuple[str, str], Mapping[Any, Any]], item: str) -> dict[str, Any]:
    row = cells.get((item, OVERALL))
    if row is None or not row["unchanged_cases"]:
        return {**_EMPTY, "empty": "not asked"}
    flips, cases = int(row["unchanged_flips"]), int(row["unchanged_cases"])
    background, colour = shade(100 * flips / cases)
    return {
        "background": background,
        "colour": colour,
        "value": percent(100 * flips / cases),
        "lines": [f"{flips:,} of {cases:,}"],
        "title": "the unchanged image asked about again",
        "empty": "",
    }


def _cell(row: Mapping[Any, Any] | None) -> dict[str, Any]:
    if row is None or not int(row["cases"]):
        empty = "" if row is None else "not judged"
        title = "" if row is None else f"{row['not_judged']:,} answers are not judged"
        return {**_EMPTY, "empty": empty, "title": title}
    background, colour = shade(100 * row["rate"])
    lines = [f"{row['flips']:,} of {row['cases']:,}"]
    star = ""
    if row["net"] == row["net"]:
        star = "*" if row["p_holm"] < SIGNIFICANT else ""
        lines.append(f"net {100 * row['net']:+.1f}{star}")
        lines.append(f"{100 * row['ci_low']:+.0f} to {100 * row['ci_high']:+.0f}")
    title = f"rate {100 * row['rate']:.1f} % ({100 * row['rate_low']:.1f} to {100 * row['rate_high']:.1f})"
    if row["p_holm"] == row["p_holm"]:
        title += f"; p = {row['p_holm']:.2g} (McNemar, Holm)"
    if row["net"] == row["net"]:
        title += f"; net {100 * row['net']:+.1f} ({100 * row['ci_low']:+.1f} to {100 * row['ci_high']:+.1f})"
    title += f"; {row['refusals']:,} refused; {row['not_judged']:,} not judged"
    return {
        "background": background,
        "colour": colour,
        "value": percent(100 * row["rate"]),
        "lines": lines,
        "title": title,
        "empty": "",
    }


def system_heats(materials: Sequence[Material]) -> list[dict[str, Any]]:
    """Return heat maps that set systems side by side, flips and accuracy by question; none without answers.

    Args:
        materials: Systems that may share a table: all simulated, or none.
    """
    known = [(one.system, one.tables.answers) for one in materials if one.tables.answers is not None]
    if not known:
        return []
    flips = [(name, {str(row["item"]): row for row in _overall(found)}) for name, found in known]
    right = [(name, {str(row["item"]): row for row in found.accuracy.to_dict("records")}) for name, found in known]
    items = list(dict.fromkeys(item for _, rows in flips for item in rows))
    asked = list(dict.fromkeys(item for _, rows in right for item in rows))
    return [
        _heat(
            "Flips by question",
            "All relations but unchanged: share of answers that flipped, count, and net of asking again.",
            items,
            [(name, {item: _cell(rows.get(item)) for item in items}) for name, rows in flips],
        ),
        _heat(
            "Accuracy by question",
            "Any-hit on the source images, and the mean over relations.",
            asked,
            [(name, {item: _right(rows.get(item)) for item in asked}) for name, rows in right],
        ),
    ]


def _overall(found: AnswerTables) -> list[dict[Any, Any]]:
    rows: list[dict[Any, Any]] = found.flips.to_dict("records")
    return [row for row in rows if row["relation"] == OVERALL]


def _heat(
    title: str, lead: str, items: Sequence[str], columns: Sequence[tuple[str, Mapping[str, dict[str, Any]]]]
) -> dict[str, Any]:
    return {
        "title": title,
        "lead": lead,
        "intervals": "",
        "columns": [name for name, _ in columns],
        "rows": [
            {
                "name": question_words(item),
                "group": "",
                "first": False,
                "side": "",
                "cells": [cells[item] for _, cells in columns],
            }
            for item in items
        ],
        "side": "",
    }


def _right(row: Mapping[Any, Any] | None) -> dict[str, Any]:
    if row is None or row["source"] != row["source"]:
        return {**_EMPTY, "empty": "no truth"}
    background, colour = shade(100 * (1 - row["source"]))
    lines = [f"{int(row['cases']):,} cases"]
    if row["perturbed"] == row["perturbed"]:
        lines.append(f"under relations {row['perturbed']:.3f}")
    return {
        "background": background,
        "colour": colour,
        "value": f"{row['source']:.3f}",
        "lines": lines,
        "title": "",
        "empty": "",
    }
