"""HTML page, Markdown summary and CSV tables for compared runs (see :mod:`.pairs`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core import __version__
from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.report.charts import figures
from medtest.report.charts.heat import percent, rows_of
from medtest.report.ci.comparison import comparison_text
from medtest.report.compared.pairs import ComparedPair
from medtest.report.compared.strips import ASKED_AGAIN, ChangedStrips
from medtest.report.pages.browser.data import BUDGET, browser_of
from medtest.report.pages.conclusions import conclusions, ends_words, points_words, rests_on
from medtest.report.pages.intervals import MARKS, legend
from medtest.report.pages.material import SampleStrip
from medtest.report.pages.page import render
from medtest.report.pages.words import cluster_word, counted, criterion_words, phantom_banner
from medtest.results.gating.conditions import (
    ERRORS,
    FAILED,
    FAILED_SOURCES,
    NOT_SHOWN,
    PASSED,
    SKIPPED,
    SOURCE_SCORE,
    Condition,
    newly_lost,
)
from medtest.results.rates.changed import BROKEN, FAILING, KINDS, PASSING, SOURCE_LOST
from medtest.results.rates.changed import SKIPPED as SKIPPED_ANEW
from medtest.results.rates.differences import LEVEL, RELATION, VIOLATIONS
from medtest.results.rates.efr import OVERALL
from medtest.runner.folder import writing_text
from medtest.runner.records.spreadsheets import frame_for_csv

if TYPE_CHECKING:
    from markupsafe import Markup

_LISTED = 40
_SIGNS = {PASSED: "good", FAILED: "bad", NOT_SHOWN: "note"}
_TITLES = {PASSED: "No worse.", FAILED: "Worse.", NOT_SHOWN: "Not shown."}
_CHANGES = {
    SOURCE_LOST: "Newly failed sources",
    FAILING: "Newly failing",
    PASSING: "Newly passing",
    BROKEN: "New errors",
    SKIPPED_ANEW: "Newly skipped",
}
PAGE, SUMMARY = "compare.html", "compare.md"
FILES = (PAGE, SUMMARY, "compare.csv", "compare_conditions.csv", "compare_cells.csv", "compare_changed.csv")
"""Files that a comparison writes into its folder."""


def chosen_cases(pair: ComparedPair, each: int) -> list[str]:
    """Return addresses of changed cases to draw, at most ``each`` per kind, spread over the relations."""
    addresses: list[str] = []
    for kind in (FAILING, PASSING):
        rows = pair.changed.loc[(pair.changed["change"] == kind).to_numpy()]
        turn = rows.groupby("relation", sort=False).cumcount()
        order = turn.sort_values(kind="stable").index
        addresses += [str(address) for address in rows.loc[order, "address"].head(each)]
    return addresses


def write_compared(pairs: Sequence[ComparedPair], drawn: Sequence[ChangedStrips], folder: Path) -> list[Path]:
    """Write ``compare.html``, ``compare.md``, ``compare.csv`` and ``compare_….csv``; return their paths.

    The tables hold differences, conditions, cells and changed cases.

    Args:
        pairs: Each run compared with the first one.
        drawn: Strips of each pair.
        folder: Target folder, created if needed.

    Raises:
        OutputProblem: A file cannot be written.
    """
    frames = {
        "compare.csv": [pair.relations for pair in pairs],
        "compare_conditions.csv": [_conditions_frame(pair) for pair in pairs],
        "compare_cells.csv": [pair.cells for pair in pairs],
        "compare_changed.csv": [
            pair.changed.assign(first_run=pair.names[0], second_run=pair.names[1]) for pair in pairs
        ],
    }
    texts = {PAGE: compared_html(pairs, drawn), SUMMARY: comparison_text(pairs)}
    for name, parts in frames.items():
        texts[name] = frame_for_csv(pd.concat(parts, ignore_index=True)).to_csv(index=False, lineterminator="\n")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with writing_text(folder / name) as file:
            file.write(text)
    return [folder / name for name in texts]


def _conditions_frame(pair: ComparedPair) -> pd.DataFrame:
    frame = pd.DataFrame([condition.facts() for condition in pair.conditions])
    return frame.assign(first_run=pair.names[0], second_run=pair.names[1])


def compared_html(pairs: Sequence[ComparedPair], drawn: Sequence[ChangedStrips]) -> str:
    """Return the HTML page.

    Args:
        pairs: Each run compared with the first one.
        drawn: Strips of each pair.
    """
    first = pairs[0]
    return render(
        "compared.html.j2",
        {
            "title": " and ".join([first.names[0], *(pair.names[1] for pair in pairs)]),
            "suite": first.other.wanted.suite,
            "phantom": phantom_banner(first.other),
            "criterion_words": criterion_words(first.other),
            "base": first.names[0],
            "level": f"{LEVEL:g}",
            "pairs": [_shown(pair, strips, BUDGET // len(pairs)) for pair, strips in zip(pairs, drawn, strict=True)],
            "medtest": __version__,
        },
    )


def overall_row(pair: ComparedPair) -> Mapping[str, Any] | None:
    """Return the row over all relations, or None."""
    return next(iter(rows_of(pair.relations, measure=VIOLATIONS, by=RELATION, name=OVERALL)), None)


def _shown(pair: ComparedPair, drawn: ChangedStrips, budget: int) -> dict[str, Any]:
    base, other = pair.names
    overall = overall_row(pair)
    clusters = cluster_word(pair.other)
    return {
        "base": base,
        "other": other,
        "simulated": pair.base.simulated or pair.other.simulated,
        "browser": browser_of((pair.base, pair.other), pair.common.records, names=pair.names, budget=budget),
        "rests": rests_on(list(pair.names), pair.common),
        "verdict": {"sign": _SIGNS[pair.verdict], "title": _TITLES[pair.verdict], "words": pair.verdict_words},
        "lost": newly_lost(pair.conditions),
        "conditions": [_condition(condition) for condition in pair.conditions],
        "methods": legend((condition.method for condition in pair.conditions), clusters),
        "cards": _cards(pair, overall),
        "conclusions": conclusions(pair.relations, clusters, pair.other.wanted.task.tables.measures),
        "forest": _forest(pair),
        "cells": _cells(pair),
        "changed": [_changed(pair, kind, drawn[0]) for kind in KINDS],
        "notes": list(drawn[1]),
        "unlike": list(pair.unlike),
    }


def _condition(condition: Condition) -> dict[str, Any]:
    """Return a condition as a row, with figures in their own unit and the interval if there is one."""
    score = condition.name == SOURCE_SCORE

    def shown(value: float | None) -> str:
        if value is None:
            return "\N{EN DASH}"
        return (
            percent(value)
            if not score
            else f"{value * condition.scale / 100:{'.3f' if condition.scale == 1 else '.2f'}}"
        )

    sources = condition.name in (SOURCE_SCORE, FAILED_SOURCES)
    return {
        "name": condition.name,
        "verdict": condition.verdict,
        "sign": _SIGNS[condition.verdict],
        "base": shown(condition.base),
        "own": shown(condition.own),
        "difference": points_words(nan if condition.difference is None else condition.difference),
        "interval": ""
        if condition.low is None or condition.high is None
        else f"{points_words(condition.low)} to {points_words(condition.high)}",
        "mark": MARKS.get(condition.method, ""),
        "margin": f"{'−' if score else '+'}{condition.limit:g}",
        "only": f"{condition.newly:,} | {condition.no_longer:,}",
        "cases": counted(condition.cases, "source" if sources else "case"),
        "words": condition.words,
    }


def _cards(pair: ComparedPair, row: Mapping[str, Any] | None) -> list[dict[str, str]]:
    return [*([] if row is None else _rate_cards(pair, row)), _lost_card(pair)]


def _lost_card(pair: ComparedPair) -> dict[str, str]:
    """Return the card of losses: failed sources, errors, skipped cases."""
    lost = [condition for condition in pair.conditions if condition.name in (FAILED_SOURCES, ERRORS, SKIPPED)]
    bad = any(condition.verdict == FAILED for condition in lost)
    return {
        "name": "new losses",
        "value": " | ".join(f"{condition.newly:,}" for condition in lost),
        "note": "failed sources | errors | skipped cases",
        "sign": "bad" if bad else "",
    }


def _rate_cards(pair: ComparedPair, row: Mapping[str, Any]) -> list[dict[str, str]]:
    ends = ends_words(row)
    interval = f"95 % interval {ends}" if ends else ""
    sign = ("bad" if row["difference"] > 0 else "good") if row["better"] else ""
    return [
        {"name": pair.names[0], "value": percent(row["second_percent"]), "note": "violations", "sign": ""},
        {"name": pair.names[1], "value": percent(row["first_percent"]), "note": "violations", "sign": ""},
        {"name": "difference", "value": f"{points_words(row['difference'])} points", "note": interval, "sign": sign},
        {
            "name": "changed cases",
            "value": f"{row['only_first']:,} | {row['only_second']:,}",
            "note": f"newly failing | newly passing, of {row['cases']:,} cases",
            "sign": "",
        },
    ]


def _forest(pair: ComparedPair) -> Markup | None:
    bars = [
        figures.Bar(
            label="all relations" if row["name"] == OVERALL else str(row["name"]).replace("_", " "),
            value=row["difference"],
            low=row["ci_low"],
            high=row["ci_high"],
        )
        for row in rows_of(pair.relations, measure=VIOLATIONS, by=RELATION)
        if row["ci_low"] == row["ci_low"]
    ]
    if not bars:
        return None
    title = f"{pair.names[1]} minus {pair.names[0]}: right of 0 is worse"
    return figures.difference_panel(title, bars, unit="points of violations", lower_is_better=True)


def _cells(pair: ComparedPair) -> list[dict[str, Any]]:
    """Return a table of relations × severities for each data set."""
    tables = []
    cells = pair.cells
    for dataset in dict.fromkeys(cells["dataset"]):
        rows_of_dataset = rows_of(cells, dataset=dataset)
        levels = sorted({row["severity"] for row in rows_of_dataset})
        rows = []
        for relation in dict.fromkeys(row["relation"] for row in rows_of_dataset):
            by_severity = {row["severity"]: row for row in rows_of_dataset if row["relation"] == relation}
            rows.append({"name": str(relation).replace("_", " "), "cells": [_cell(by_severity.get(s)) for s in levels]})
        tables.append({"dataset": dataset, "levels": levels, "rows": rows})
    return tables


def _cell(row: Mapping[Any, Any] | None) -> dict[str, str]:
    if row is None:
        return {"points": "", "rates": "", "interval": "", "style": "", "p": ""}
    colour = ("bad" if row["difference"] > 0 else "good") if row["better"] else ""
    return {
        "points": points_words(row["difference"]),
        "rates": f"{percent(row['second_percent'])} → {percent(row['first_percent'])}",
        "interval": ends_words(row),
        "p": f"{row['only_first']} | {row['only_second']}",
        "style": colour,
    }


def _changed(pair: ComparedPair, kind: str, drawn: Mapping[tuple[int, str], SampleStrip]) -> dict[str, Any]:
    rows = rows_of(pair.changed, change=kind)
    floor = sum(row["relation"] == UNCHANGED for row in rows)
    shown = {address for _, address in drawn}
    listed = [
        {
            "address": str(row["address"]),
            "relation": str(row["relation"]).replace("_", " "),
            "severity": row["severity"],
            "first": _score(row["source_first"], row["first"]),
            "second": _score(row["source_second"], row["second"]),
            "source_first": _score(row["source_first"]),
            "source_second": _score(row["source_second"]),
        }
        for row in rows[:_LISTED]
    ]
    return {
        "title": _CHANGES[kind],
        "shown": kind in (FAILING, PASSING),
        "source": kind == SOURCE_LOST,
        "count": counted(len(rows), "source image" if kind == SOURCE_LOST else "case")
        + (f", {floor:,} of them {UNCHANGED}" if floor else ""),
        "none": not rows,
        "score": str(rows[0]["score"]) if rows else "",
        "rows": listed,
        "more": max(0, len(rows) - _LISTED),
        "strips": [
            {
                "address": str(row["address"]),
                "pictures": [
                    _picture(pair.names[number], strip)
                    for number in (0, 1)
                    if (strip := drawn.get((number, str(row["address"])))) is not None
                ],
            }
            for row in rows
            if str(row["address"]) in shown
        ],
    }


def _picture(name: str, strip: SampleStrip) -> dict[str, Any]:
    facts, picture = strip
    note = "asked again for this page" if facts.get(ASKED_AGAIN) else "from its run"
    return {"name": name, "note": note, **picture}


def _score(*values: float) -> str:
    return " → ".join("–" if number != number else f"{number:.3f}" for number in values)
