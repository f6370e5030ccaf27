"""Report sections on systems that draw: errors with published figures, net rates, misses, refusals, the reader."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from medtest.report.charts.bars import bar_panel
from medtest.report.charts.figures import BLUE, GREEN, ORANGE, PURPLE, SERIES, VERMILION, Bar
from medtest.report.charts.heat import NOT_MEASURED, percent, rows_of
from medtest.report.pages.words import p_words
from medtest.results.cube.axes import ALL, OVERALL
from medtest.results.published import published_actesting as published
from medtest.tasks.depict.oracle import PROMPT, WHOLE
from medtest.tasks.depict.rules import ENTITIES, KINDS, PAPER, RELATIONS, RULES, STRICT
from medtest.tasks.depict.tables.results import DepictTables

_FIGURE_SIX = ("SS", "ER_R", "EC", "ER_A")
_NAMED = {relation: name for name, relation in published.OPERATORS.items()} | {
    "source": "source",
    "unchanged": "repeated prompt",
    OVERALL: "all operators",
}
_MOST_CLASSES = 30
_WORDS = {WHOLE: "anything", ENTITIES: "entities", RELATIONS: "relations"}
_PUBLISHED_COLOURS = (VERMILION, GREEN, PURPLE, ORANGE)


def depict_page(tables: DepictTables) -> dict[str, Any]:
    """Return the values of the template."""
    return {
        "simulated": tables.simulated,
        "weighted": tables.weighted,
        "figure": _figure_six(tables),
        "legend": figure_legend(),
        "rules": [_rates(tables, rule) for rule in RULES],
        "truth": _rates(tables, ""),
        "net": _net(tables),
        "misses": _misses(tables),
        "published_misses": _published_misses(),
        "software": published.software(),
        "paper": published.PAPER,
        "refusals": _refusals(tables),
        "reader": " ".join(filter(None, (reader_words(tables), soft_words(tables)))),
        "questions": _questions(tables),
        "classes": _classes(tables),
        "costs": _costs(tables),
    }


def reader_words(tables: DepictTables) -> str:
    """Return the name of the reader and a summary of its card."""
    if not tables.reader:
        return "The runs do not name the reader of the pictures."
    if tables.card is None:
        return f"{tables.reader} read the pictures. It has no card, so its error rates are unknown and not corrected."
    rows = tables.card.of_kind("class")
    detectable = sum(row.reliable for row in rows)
    return (
        f"{tables.reader} read the pictures; its card is measured on {tables.card.pictures:,} labelled pictures"
        f"{f' ({tables.card.data})' if tables.card.data else ''}. It can tell {detectable:,} of {len(rows):,} classes."
    )


def soft_words(tables: DepictTables) -> str:
    """Return the soft scores beside the plain answers, or why there are none; "" if none were requested."""
    if not tables.soft:
        return ""
    rows = [row for row in rows_of(tables.questions, kind=WHOLE) if row["soft_asked"]]
    row = next((row for row in rows if row["relation"] == OVERALL), next(iter(rows), None))
    if row is None:
        return (
            "No reply of the reader's model had log-probabilities: there are no soft scores, and plain answers are "
            "used. Ask a model that reports them (vLLM, llama.cpp, a folder of Hugging Face); some allow soft=5 only."
        )
    scores = f"mean probability of right answers {_range(row, 'soft', 'soft')} % over {row['soft_asked']:,} questions"
    words = f"of plain answers {_range(row, 'rate')} % of {row['asked']:,} are right"
    return f"Soft scores, {shown(row['relation'])}: {scores}; {words}. tables/depiction_questions.csv."


def shown(relation: object) -> str:
    """Return the name of a relation in the paper."""
    return _NAMED.get(str(relation), str(relation).replace("_", " "))


def _figure_six(tables: DepictTables) -> list[Markup]:
    """Return the paper's figure 6: panels of this system, then of the four software."""
    panels = []
    for kind, name, column in ((ENTITIES, "Error_e", "error_e"), (RELATIONS, "Error_r", "error_r")):
        series = []
        for rule in (STRICT, PAPER):
            rows = {str(row["relation"]): row for row in rows_of(tables.errors, rule=rule, against="source", kind=kind)}
            series.append((rule, [_bar(rows.get(published.OPERATORS[operator])) for operator in _FIGURE_SIX]))
        panels.append(
            bar_panel(f"{name}: {tables.system}"[:52], _FIGURE_SIX, series, y_name=name, colours=(BLUE, SERIES[-1]))
        )
        published_series = [
            (software, [Bar(value=_cell("errors", software, operator, column)) for operator in _FIGURE_SIX])
            for software in published.software()
        ]
        panels.append(
            bar_panel(
                f"{name}: published", _FIGURE_SIX, published_series, y_name=name, colours=_PUBLISHED_COLOURS, width=420
            )
        )
    return panels


def figure_legend() -> list[tuple[str, str]]:
    """Return names and colours of the figure's series."""
    own_series = [("this system, strict", BLUE), ("this system, the paper's equations", SERIES[-1])]
    return [
        *own_series,
        *((f"{software}, published", c) for software, c in zip(published.software(), _PUBLISHED_COLOURS, strict=True)),
    ]


def _cell(table: str, software: str, operator: str, column: str) -> float:
    value = published.value(table, software, operator, column)
    return math.nan if value is None else value


def _bar(row: Mapping[Any, Any] | None) -> Bar:
    if row is None or not row["cases"]:
        return Bar(value=math.nan)
    return Bar(value=float(row["rate"]), low=float(row["ci_low"]), high=float(row["ci_high"]))


def _rates(tables: DepictTables, rule: str) -> dict[str, Any]:
    """Return error rates under a rule, rows of relations and columns of kinds; rule "" is against the truth."""
    kinds = (WHOLE, ENTITIES, RELATIONS) if rule not in (STRICT, "") else (WHOLE, *KINDS)
    against = "source" if rule else "truth"
    by = {(str(row["relation"]), str(row["kind"])): row for row in rows_of(tables.errors, rule=rule, against=against)}
    names = list(dict.fromkeys(relation for relation, _ in by))
    rows: list[dict[str, Any]] = []
    for name in names:
        total = by[name, WHOLE]
        rows.append(
            {
                "name": shown(name),
                "sum": name == OVERALL,
                "cases": f"{total['cases']:,}",
                "cells": [_range(by.get((name, kind)), "rate") for kind in kinds],
                "corrected": [_range(by.get((name, kind)), "corrected", "corrected") for kind in (ENTITIES, RELATIONS)],
                "cannot_tell": _count(total["cannot_tell"], total["cannot_tell_rate"]),
            }
        )
    corrected = any(any(row["corrected"]) for row in rows)
    return {"rule": rule, "kinds": [_WORDS.get(kind, kind) for kind in kinds], "rows": rows, "corrected": corrected}


def _range(row: Mapping[Any, Any] | None, name: str, ends: str = "ci", *, signed: bool = False) -> str:
    """Return a rate in percent with its interval, or ""."""
    if row is None or row[name] != row[name]:
        return ""
    form = "+.1f" if signed else ".1f"
    low, high = row[f"{ends}_low"], row[f"{ends}_high"]
    return f"{100 * row[name]:{form}} ({100 * low:{form}} to {100 * high:{form}})"


def _count(count: Any, share: Any) -> str:
    return f"{count:,} ({percent(100 * share)})" if count else "0"


def _net(tables: DepictTables) -> list[dict[str, Any]]:
    rows = []
    for row in rows_of(tables.net):
        if row["kind"] not in (ENTITIES, RELATIONS, WHOLE) or (row["kind"] == WHOLE and row["rule"] != STRICT):
            continue
        rows.append(
            {
                "name": shown(row["relation"]),
                "rule": row["rule"],
                "kind": _WORDS[str(row["kind"])],
                "cases": f"{row['cases']:,}",
                "rate": f"{100 * row['rate']:.1f}",
                "floor": f"{100 * row['unchanged_rate']:.1f}" if row["unchanged_cases"] else NOT_MEASURED,
                "net": _range(row, "net", signed=True) or NOT_MEASURED,
                "p": p_words(row["p_holm"]),
                "smallest": "" if row["smallest_net"] != row["smallest_net"] else f"{100 * row['smallest_net']:.1f}",
                "truth": "" if row["truth_rate"] != row["truth_rate"] else f"{100 * row['truth_rate']:.1f}",
                "cannot_tell": _count(row["cannot_tell"], row["cannot_tell_rate"]),
                "strict": row["rule"] == STRICT,
            }
        )
    return sorted(rows, key=lambda row: RULES.index(str(row["rule"])))


def _misses(tables: DepictTables) -> list[dict[str, Any]]:
    rows = []
    by = {(str(r["relation"]), str(r["rule"]), str(r["kind"])): r for r in rows_of(tables.misses)}
    for name in dict.fromkeys(relation for relation, _, _ in by):
        cells = [
            _range(by.get((name, rule, kind)), "miss") for rule in (STRICT, PAPER) for kind in (ENTITIES, RELATIONS)
        ]
        corrected = [_range(by.get((name, STRICT, kind)), "corrected", "corrected") for kind in (ENTITIES, RELATIONS)]
        counts_said = [by.get((name, STRICT, kind), {}).get("said", 0) for kind in (ENTITIES, RELATIONS)]
        label = "source (Orig)" if name == "source" else shown(name)
        counts = " / ".join(f"{count:,}" for count in counts_said)
        strict = [by[name, STRICT, kind] for kind in (ENTITIES, RELATIONS) if (name, STRICT, kind) in by]
        rows.append(
            {
                "name": label,
                "sum": name == OVERALL,
                "said": counts,
                "cells": cells,
                "corrected": corrected,
                "cannot_tell": " / ".join(_count(row["cannot_tell"], row["cannot_tell_rate"]) for row in strict),
            }
        )
    return rows


def _published_misses() -> list[dict[str, Any]]:
    rows = []
    for operator in published.OPERATORS:
        cells = [
            f"{100 * value:.1f}" if value is not None else ""
            for software in published.software()
            for value in (published.value("miss", software, operator, f"miss_{end}") for end in "er")
        ]
        if any(cells):
            rows.append({"name": operator, "cells": cells})
    return rows


def _questions(tables: DepictTables) -> list[dict[str, Any]]:
    """Return the questions of prompts with both kinds of scores, if there are soft ones."""
    rows = rows_of(tables.questions)
    if not any(row["soft_asked"] for row in rows):
        return []
    return [
        {
            "name": shown(row["relation"]),
            "kind": "all" if row["kind"] == WHOLE else "whole prompt" if row["kind"] == PROMPT else row["kind"],
            "sum": row["kind"] == WHOLE,
            "asked": f"{row['asked']:,}",
            "rate": _range(row, "rate"),
            "soft_asked": f"{row['soft_asked']:,}",
            "soft": _range(row, "soft", "soft"),
            "neither": "" if row["neither"] != row["neither"] else f"{100 * row['neither']:.1f}",
            "cannot_tell": _count(row["cannot_tell"], row["cannot_tell_rate"]),
        }
        for row in rows
    ]


def _refusals(tables: DepictTables) -> list[dict[str, Any]]:
    rows = []
    for row in rows_of(tables.refusals):
        rows.append(
            {
                "name": shown(row["relation"]),
                "sum": row["relation"] == OVERALL,
                **{name: f"{row[name]:,}" for name in ("asked", "drawn", "content_filter", "refusal", "malformed")},
                "errors": f"{row['errors']:,}",
                "after": f"{row['withheld_after_drawn']:,}",
                "rate": _range(row, "withheld_rate"),
                "rewritten": _count(row["rewritten"], row["rewritten_rate"]),
                "cannot_tell": _count(row["cannot_tell"], row["cannot_tell_rate"]),
            }
        )
    return rows


def _classes(tables: DepictTables) -> list[dict[str, Any]]:
    rows = [row for row in rows_of(tables.classes) if row["said"]]
    rows.sort(key=lambda row: (-(row["missed"] or 0), str(row["kind"]), str(row["name"])))
    return [
        {
            "kind": row["kind"],
            "name": row["name"],
            "said": f"{row['said']:,}",
            "missed": f"{row['missed']:,}",
            "rate": _range(row, "missed_rate") if row["told"] else "cannot tell",
            "uncalled": f"{row['uncalled']:,}" if row["kind"] == "class" else "",
            "sensitivity": _card(row, "sensitivity"),
            "specificity": _card(row, "specificity"),
        }
        for row in rows[:_MOST_CLASSES]
    ]


def _card(row: Mapping[Any, Any], name: str) -> str:
    return "" if row[name] != row[name] else f"{row[name]:.3f} ({row[f'{name}_low']:.3f} to {row[f'{name}_high']:.3f})"


def _costs(tables: DepictTables) -> list[dict[str, Any]]:
    rows = []
    for row in rows_of(tables.costs):
        usd, median = row["cost_usd"], row["seconds_median"]
        rows.append(
            {
                "name": "all prompts" if row["by"] == ALL else shown(row["name"]),
                "sum": row["by"] == ALL,
                "answers": f"{row['answers']:,}",
                "usd": "" if usd != usd else f"{usd:,.4f}",
                "unknown": f"{row['without_cost']:,}",
                "median": "" if median != median else f"{median:.2f}",
                "attempts": "" if row["attempts"] != row["attempts"] else f"{row['attempts']:,.0f}",
            }
        )
    return rows
