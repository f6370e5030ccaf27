"""Heat maps of flips, with rows of questions and columns of relations or systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtest.report.charts.heat import blank, filled, heat_map, rows_of
from medtest.report.pages.words import question_words
from medtest.results.cube.axes import ALL, OVERALL
from medtest.tasks.ask.tables.results import AnswerTables

SIGNIFICANT = 0.05


def flip_heat(tables: AnswerTables) -> dict[str, Any] | None:
    """Return the heat map of questions × relations, repeated questions first; None if nothing was judged."""
    table = rows_of(tables.flips)
    if not table:
        return None
    cells = {(str(row["item"]), str(row["relation"])): row for row in table}
    relations = [name for name in dict.fromkeys(str(row["relation"]) for row in table) if name != OVERALL]
    repeated = ["asked again"] if any(int(row["unchanged_cases"]) for row in table) else []

    def row(item: str) -> list[dict[str, Any]]:
        floor = [_floor(cells.get((item, OVERALL))) for _ in repeated]
        return [*floor, *(_cell(cells.get((item, relation))) for relation in (*relations, OVERALL))]

    return heat_map(
        list(dict.fromkeys(item for item, _ in cells)),
        {},
        columns=[*repeated, *(name.replace("_", " ") for name in relations), "all relations"],
        cells=row,
        shown=question_words,
        words={str(entry["item"]): str(entry["question"]) for entry in table},
        sums=(ALL,),
    )


def _floor(row: Mapping[Any, Any] | None) -> dict[str, Any]:
    if row is None or not row["unchanged_cases"]:
        return blank("not asked")
    flips, cases = int(row["unchanged_flips"]), int(row["unchanged_cases"])
    title = "question about the unchanged image repeated"
    return filled(100 * flips / cases, [f"{flips:,} of {cases:,}"], title=title)


def _cell(row: Mapping[Any, Any] | None) -> dict[str, Any]:
    if row is None:
        return blank()
    if not int(row["cases"]):
        return blank("not judged", f"{row['not_judged']:,} answers are not judged")
    lines = [f"{row['flips']:,} of {row['cases']:,}"]
    title = f"rate {100 * row['rate']:.1f} % ({100 * row['rate_low']:.1f} to {100 * row['rate_high']:.1f})"
    if row["p_holm"] == row["p_holm"]:
        title += f"; p = {row['p_holm']:.2g} (McNemar, Holm)"
    if row["net"] == row["net"]:
        net, low, high = (100 * row[name] for name in ("net", "ci_low", "ci_high"))
        lines += [f"net {net:+.1f}{'*' if row['p_holm'] < SIGNIFICANT else ''}", f"{low:+.0f} to {high:+.0f}"]
        title += f"; net {net:+.1f} ({low:+.1f} to {high:+.1f})"
    title += f"; {row['refusals']:,} refused; {row['not_judged']:,} not judged"
    return filled(100 * row["rate"], lines, title=title)


def system_heats(systems: Sequence[tuple[str, AnswerTables]]) -> list[dict[str, Any]]:
    """Return heat maps that compare systems, flips and accuracy by question; empty without systems.

    Args:
        systems: Names of systems that may share a table (all simulated, or none), with their tables.
    """
    if not systems:
        return []
    names = [name for name, _ in systems]
    flips = [{str(row["item"]): row for row in rows_of(tables.flips, relation=OVERALL)} for _, tables in systems]
    right = [{str(row["item"]): row for row in rows_of(tables.accuracy)} for _, tables in systems]
    return [
        heat_map(
            list(dict.fromkeys(item for rows in flips for item in rows)),
            {},
            title="Flips by question",
            lead="All relations but unchanged: share of answers that flipped, count, and net of repeated questions.",
            columns=names,
            cells=lambda item: [_cell(rows.get(item)) for rows in flips],
            shown=question_words,
        ),
        heat_map(
            list(dict.fromkeys(item for rows in right for item in rows)),
            {},
            title="Accuracy by question",
            lead="Any-hit on the source images, and the mean over relations.",
            columns=names,
            cells=lambda item: [_right(rows.get(item)) for rows in right],
            shown=question_words,
        ),
    ]


def _right(row: Mapping[Any, Any] | None) -> dict[str, Any]:
    if row is None or row["source"] != row["source"]:
        return blank("no truth")
    lines = [f"{int(row['cases']):,} cases"]
    if row["perturbed"] == row["perturbed"]:
        lines.append(f"under relations {row['perturbed']:.3f}")
    return filled(100 * (1 - row["source"]), lines, value=f"{row['source']:.3f}")
