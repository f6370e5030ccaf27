"""Conclusions of a comparison of systems: the cases it rests on, and which system is better on which rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtest.core.deferred import pd
from medtest.report.charts.heat import percent
from medtest.report.pages.intervals import MARKS, legend
from medtest.report.pages.words import counted, p_words, question_words
from medtest.results.rates.differences import ITEM, RELATION, VIOLATIONS
from medtest.results.rates.efr import OVERALL
from medtest.results.records.common_cases import Common, LeftOut

_NAMED = 6
_TITLES = {
    (VIOLATIONS, RELATION): ("Violations by relation", "all relations"),
    (VIOLATIONS, ITEM): ("Violations by question", "all questions"),
}


def rests_on(systems: Sequence[str], common: Common) -> dict[str, Any]:
    """Return a statement of the cases that systems are compared on, and of those left out.

    Args:
        systems: Names of the systems.
        common: Their common cases.
    """
    if common.whole:
        words = (
            f"{_all(systems).capitalize()} finished the same {counted(common.cases, 'case')} on the same follow-ups."
        )
        return {"words": words, "left_out": [], "none": False, "partial": False}
    finished = _listed([f"{name} {number:,}" for name, number in zip(systems, common.finished, strict=True)])
    if not common.cases:
        unlike = (
            f" {counted(common.unlike, 'case').capitalize()} with the same address have different images."
            if common.unlike
            else ""
        )
        words = f"No case was finished by all systems on the same image ({finished}), so nothing is compared."
        return {"words": words + unlike, "left_out": [], "none": True, "partial": True}
    words = (
        f"Compared on the {counted(common.cases, 'case')} that {_all(systems)} finished on the same follow-ups. "
        f"Finished cases: {finished}. All figures on this page are from the common cases; the report of each system "
        "covers all of its cases."
    )
    left_out = [f"{name}: {_left(part)}" for name, part in zip(systems, common.left_out, strict=True) if part.cases]
    return {"words": words + _unlike(common), "left_out": left_out, "none": False, "partial": True}


def _all(systems: Sequence[str]) -> str:
    return "both systems" if len(systems) == 2 else f"all {len(systems)} systems"


def _unlike(common: Common) -> str:
    if not common.unlike:
        return ""
    unlike = counted(common.unlike, "case")
    return f" {unlike} with the same address have different images or questions and are not compared."


def _left(part: LeftOut) -> str:
    parts = []
    if part.seeds:
        parts.append(f"all of {counted(len(part.seeds), 'source case')} ({_named(part.seeds)})")
    if part.relations:
        parts.append(f"all of {counted(len(part.relations), 'relation')} ({_named(part.relations)})")
    where = f": {', '.join(parts)}" if parts else ", single cases of several"
    return f"{counted(part.cases, 'case')} left out{where}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def conclusions(table: pd.DataFrame, clusters: str, measures: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the template's data of every measure: pairs, sentences and rows.

    Args:
        table: Table from :func:`medtest.results.rates.differences.difference_table`.
        clusters: Name of the unit that intervals resample.
        measures: Further measures, see :attr:`medtest.core.tasks.roles.TaskTables.measures`.
    """
    titles = _TITLES | {(name, RELATION): words for name, words in measures.items()}
    rows: Sequence[Mapping[Any, Any]] = table.to_dict("records")
    sections = []
    for key, (title, all_words) in titles.items():
        of_measure = [row for row in rows if (row["measure"], row["by"]) == key]
        if not of_measure:
            continue
        pairs = list(dict.fromkeys((row["first"], row["second"]) for row in of_measure))
        methods = list(dict.fromkeys(row["ci_method"] for row in of_measure if row["ci_method"]))
        sections.append(
            {
                "title": title,
                "pairs": [
                    _pair(
                        pair,
                        [row for row in of_measure if (row["first"], row["second"]) == pair],
                        key,
                        all_words,
                        methods,
                    )
                    for pair in pairs
                ],
                "intervals": legend(methods, clusters),
                "tests": sum(row["name"] != OVERALL for row in of_measure),
                "single": len(pairs) == 1,
            }
        )
    return sections


def _pair(
    pair: tuple[str, str],
    rows: Sequence[Mapping[Any, Any]],
    key: tuple[str, str],
    all_words: str,
    methods: Sequence[str],
) -> dict[str, Any]:
    parts = [row for row in rows if row["name"] != OVERALL]
    overall = next((row for row in rows if row["name"] == OVERALL), None)
    shown = [_row(row, all_words, methods, item=key[1] == ITEM) for row in rows]
    return {
        "first": pair[0],
        "second": pair[1],
        "verdict": "" if overall is None else _verdict(overall, all_words),
        "on": _on(pair, parts, item=key[1] == ITEM),
        "rows": shown,
    }


def _verdict(row: Mapping[Any, Any], all_words: str) -> str:
    """Return the sentence over all relations."""
    first, second, p = str(row["first"]), str(row["second"]), p_words(row["p_holm"])
    cases = counted(int(row["cases"]), "case")
    rates = f"{percent(row['first_percent'])} against {percent(row['second_percent'])} of {cases}"
    difference = (
        f"a difference of {abs(row['difference']):.1f} points{_interval_of(row)}; p {'' if '<' in p else '= '}{p}"
    )
    if not row["better"]:
        return f"Over {all_words}, no difference between {first} and {second} is shown: {rates}, {difference}."
    other = second if row["better"] == first else first
    return f"Over {all_words}, {row['better']} is better than {other}: {first} has {rates} for {second}, {difference}."


def _interval_of(row: Mapping[Any, Any]) -> str:
    if row["ci_low"] != row["ci_low"]:
        return ""
    low, high = sorted((float(row["ci_low"]), float(row["ci_high"])))
    if row["difference"] < 0:
        low, high = -high, -low
    return f" (95 % interval {points_words(low)} to {points_words(high)})"


def _on(pair: tuple[str, str], rows: Sequence[Mapping[Any, Any]], *, item: bool) -> list[str]:
    """Return sentences on which system is better on which rows."""
    sentences = []
    for name in pair:
        better = [_name(row, item=item) for row in rows if row["better"] == name]
        if better:
            sentences.append(f"{name} is better on {_listed(better)}.")
    same = [_name(row, item=item) for row in rows if not row["better"]]
    if same and sentences:
        sentences.append(f"No difference is shown on {_listed(same)}.")
    elif same:
        noun = "question" if item else "relation"
        sentences.append(f"No difference is shown on any single {noun}.")
    return sentences


def _row(row: Mapping[Any, Any], all_words: str, methods: Sequence[str], *, item: bool) -> dict[str, Any]:
    ends = ends_words(row)
    mark = MARKS.get(str(row["ci_method"]), "") if ends and len(methods) > 1 else ""
    return {
        "name": all_words if row["name"] == OVERALL else _name(row, item=item),
        "sum": row["name"] == OVERALL,
        "first": percent(row["first_percent"]),
        "second": percent(row["second_percent"]),
        "difference": points_words(row["difference"]),
        "interval": ends or "\N{EN DASH}",
        "mark": mark,
        "cases": f"{int(row['cases']):,}",
        "only": f"{int(row['only_first']):,} | {int(row['only_second']):,}",
        "p": p_words(row["p_holm"]),
        "better": f"{row['better']} is better" if row["better"] else "no difference shown",
        "shown": bool(row["better"]),
    }


def _name(row: Mapping[Any, Any], *, item: bool) -> str:
    return question_words(str(row["name"])) if item else str(row["name"]).replace("_", " ")


def ends_words(row: Mapping[Any, Any]) -> str:
    """Return the ends of a difference's interval, "" without one."""
    has_interval = row["ci_low"] == row["ci_low"]
    return f"{points_words(row['ci_low'])} to {points_words(row['ci_high'])}" if has_interval else ""


def points_words(value: float) -> str:
    """Return a difference with its sign and one decimal, or a dash for NaN."""
    if value != value:
        return "\N{EN DASH}"
    shown = round(float(value), 1)
    return f"{shown:+.1f}".replace("-", "\N{MINUS SIGN}") if shown else "0.0"
