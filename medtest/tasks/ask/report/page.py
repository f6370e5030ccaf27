"""Report sections on systems that answer questions: accuracy, flips, refusals, cost, worst images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtest.core.deferred import pd
from medtest.language.questions.wording import plain_value
from medtest.report.charts.heat import percent, rows_of
from medtest.report.pages.words import counted, p_words, question_words
from medtest.results.cube.axes import ALL, OVERALL
from medtest.tasks.ask.report.accuracy import accuracy_rows, hidden_words, published_words
from medtest.tasks.ask.report.heat import flip_heat
from medtest.tasks.ask.report.illustration import illustration
from medtest.tasks.ask.report.sheets import sheets
from medtest.tasks.ask.tables.results import AnswerTables
from medtest.tasks.ask.tables.rows import SOURCE, UNCHANGED
from medtest.tasks.ask.tables.states import COUNTS

_MOST_JUDGED = 40
_TURNED = ("right_to_wrong", "wrong_to_right", "wrong_to_wrong")


def answers(tables: AnswerTables, folder: Path) -> dict[str, Any]:
    """Return the values of the template.

    Args:
        tables: Tables of the system.
        folder: Folder with the sheets of the worst images.
    """
    return {
        "phantom": tables.phantom,
        "simulated": tables.simulated,
        "hidden": hidden_words(tables),
        "accuracy": accuracy_rows(tables),
        "published": published_words(tables),
        "heat": flip_heat(tables),
        "floor": floor_words(tables.flips),
        "relations": _by_relation(tables),
        "questions": _by_question(tables.directions),
        "changes": _changes(tables.changes),
        "states": _states(tables.states),
        "judge": judge_words(tables),
        "judged": [] if tables.judged is None else _judged(tables.judged),
        "costs": _costs(tables.costs),
        "cost_total": _cost_total(tables.costs),
        "cost_words": _cost_words(tables.costs),
        "worst": [
            illustration(image, pictures)
            for image, pictures in zip(tables.worst, sheets(folder, tables.worst), strict=True)
        ],
    }


def floor_words(flips: pd.DataFrame) -> str:
    """Return the flip rate under all relations with that of repeated questions; "" without either."""
    row = next(iter(rows_of(flips, item=ALL, relation=OVERALL)), None)
    if row is None or not row["cases"]:
        return ""
    words = (
        f"{100 * row['rate']:.1f} % of {counted(int(row['cases']), 'answer')} flipped under relations "
        f"({100 * row['rate_low']:.1f} to {100 * row['rate_high']:.1f})"
    )
    if not row["unchanged_cases"]:
        return f"{words}. Questions about unchanged images were not repeated, so the model's own flip rate is unknown."
    repeat_rate, flipped = 100 * row["unchanged_rate"], 100 * row["unchanged_flips"] / row["unchanged_cases"]
    words += f", {flipped:.1f} % of {row['unchanged_cases']:,} when the question about the unchanged image was repeated"
    if f"{repeat_rate:.1f}" != f"{flipped:.1f}":  # otherwise net would not look like the difference of the two
        words += f" ({repeat_rate:.1f} % with questions weighted as under relations)"
    return f"{words}: net {100 * row['net']:+.1f} points ({100 * row['ci_low']:+.1f} to {100 * row['ci_high']:+.1f})."


def _by_relation(tables: AnswerTables) -> list[dict[str, Any]]:
    """Return one row for each relation: flips net of the floor, and directions summed over questions."""
    rows = []
    directions = tables.directions
    for row in rows_of(tables.flips, item=ALL):
        relation = str(row["relation"])
        relevant = directions[directions["relation"] != UNCHANGED]
        selected = relevant if relation == OVERALL else relevant[relevant["relation"] == relation]
        turned = {name: int(selected[name].sum()) for name in _TURNED}
        rows.append(
            {
                "name": "all relations" if relation == OVERALL else relation.replace("_", " "),
                "sum": relation == OVERALL,
                "flips": f"{row['flips']:,} of {row['cases']:,}",
                "rate": _percent_range(row, "rate", "rate_low", "rate_high"),
                "net": _percent_range(row, "net", "ci_low", "ci_high", signed=True),
                "refusals": f"{row['refusals']:,}",
                "not_judged": f"{row['not_judged']:,}",
                **{name: f"{count:,}" for name, count in turned.items()},
            }
        )
    return rows


def _percent_range(row: Mapping[Any, Any], name: str, low: str, high: str, *, signed: bool = False) -> str:
    if row[name] != row[name]:
        return ""
    form = "+.1f" if signed else ".1f"
    unit = "" if signed else " %"
    return f"{100 * row[name]:{form}}{unit} ({100 * row[low]:{form}} to {100 * row[high]:{form}})"


def _by_question(directions: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the directions of changed answers by question over all relations, and the smallest corrected p."""
    relevant = directions[directions["relation"] != UNCHANGED]
    rows = []
    for item in dict.fromkeys(relevant["item"]):
        selected = relevant[relevant["item"] == item]
        cases = int(selected["cases"].sum())
        lowest = selected.loc[selected["p_holm"].idxmin()] if selected["p_holm"].notna().any() else None
        turned = {name: int(selected[name].sum()) for name in _TURNED}
        fall = (turned["wrong_to_right"] - turned["right_to_wrong"]) / cases
        rows.append(
            {
                "name": question_words(str(item)),
                "cases": f"{cases:,}",
                **{name: f"{count:,}" for name, count in turned.items()},
                "difference": f"{fall:+.3f}",
                "p": "" if lowest is None else p_words(lowest["p_holm"]),
                "under": "" if lowest is None or lowest["p_holm"] >= 1 else str(lowest["relation"]).replace("_", " "),
            }
        )
    return rows


def _changes(changes: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for row in rows_of(changes, relation=OVERALL):
        rows.append(
            {
                "name": question_words(str(row["item"])),
                "cases": f"{row['cases']:,}",
                **{name: _share(row[name]) for name in ("any_hit", "exact", "jaccard")},
                **{name: f"{row[name]:,}" for name in ("weaker", "stronger", "overlap")},
                "distance": "" if row["distance"] != row["distance"] else f"{row['distance']:.2f}",
            }
        )
    return rows


def _share(value: float) -> str:
    return "" if value != value else f"{value:.3f}"


def _states(states: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for row in rows_of(states, item=ALL):
        relation = str(row["relation"])
        names = {SOURCE: "source images", OVERALL: "all relations"}
        ends = f"{100 * row['ci_low']:.1f} to {100 * row['ci_high']:.1f}"
        rows.append(
            {
                "name": names.get(relation, relation.replace("_", " ")),
                "sum": relation == OVERALL,
                "rate": f"{percent(100 * row['refusal_rate'])} ({ends})",
                **{name: f"{row[name]:,}" for name in COUNTS},
            }
        )
    return rows


def judge_words(tables: AnswerTables) -> str:
    """Return the judge's name and how much it read, "" without a judge."""
    if tables.judged is None:
        return ""
    if tables.judged.empty:
        unread = _left_unread(tables.states)
        if unread:
            why = "they are empty, or it was stopped or gave no reply"
            return f"medtest finds no value in {unread:,} answers, and {tables.judge} read none of them: {why}."
        return f'medtest found a value, a refusal or "not relevant" in every answer; {tables.judge} read nothing.'
    resolved = tables.judged[tables.judged["state"] != "unparsed"]
    cases = int(resolved["cases"].sum())
    return (
        f"medtest finds no value in {len(tables.judged):,} different answers. {tables.judge} read {len(resolved):,} of"
        f" them ({cases:,} cases). This page and its tables use these readings and count them in the column"
        ' "by the judge"; the run\'s own tables, outside views/, do not use them.'
    ) + ("" if tables.judge_cost_usd is None else f" The readings cost ${tables.judge_cost_usd:,.4f}.")


def _left_unread(states: pd.DataFrame) -> int:
    """Return the number of answers without a parsed value, except cut-off and malformed ones."""
    rows = states[(states["item"] == ALL) & (states["relation"] != OVERALL)]
    return int(rows["unparsed"].sum() - rows["cut_off"].sum() - rows["malformed"].sum())


def _judged(readings: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the readings with most cases, those that the judge could not read last."""
    order = readings.assign(_left=readings["state"] == "unparsed").sort_values(
        ["_left", "cases"], ascending=[True, False], kind="stable"
    )
    return [
        {
            "name": question_words(str(row["item"])),
            "words": row["words"],
            "state": "unclear" if row["state"] == "unparsed" else str(row["state"]).replace("_", " "),
            "value": plain_value(str(row["said"]), str(row["kind"])) if row["said"] else "",
            "quote": row["quote"],
            "doubt": row["doubt"],
            "cases": f"{row['cases']:,}",
        }
        for row in order.head(_MOST_JUDGED).to_dict("records")
    ]


def _costs(costs: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for row in costs.to_dict("records"):
        if row["by"] == "item":
            continue
        rows.append(
            {
                "name": "all answers" if row["by"] == ALL else str(row["name"]).replace("_", " "),
                "sum": row["by"] == ALL,
                "answers": f"{row['answers']:,}",
                "prompt": _whole(row["prompt_tokens"]),
                "completion": _whole(row["completion_tokens"]),
                "usd": "" if row["cost_usd"] != row["cost_usd"] else f"{row['cost_usd']:,.4f}",
                "median": "" if row["seconds_median"] != row["seconds_median"] else f"{row['seconds_median']:.3f}",
                "p95": "" if row["seconds_p95"] != row["seconds_p95"] else f"{row['seconds_p95']:.3f}",
                "attempts": _whole(row["attempts"]),
            }
        )
    return rows


def _cost_total(costs: pd.DataFrame) -> str:
    if costs.empty:
        return ""
    total = costs.to_dict("records")[0]
    parts = [f"{total['answers']:,} answers"]
    parts += [
        f"{_whole(total[name])} {words}"
        for name, words in (("prompt_tokens", "tokens in"), ("completion_tokens", "tokens out"))
        if _whole(total[name])
    ]
    parts += [] if total["cost_usd"] != total["cost_usd"] else [f"${total['cost_usd']:,.2f}"]
    return f"{', '.join([*parts, *filter(None, [seconds_words(total)])])}."


def _cost_words(costs: pd.DataFrame) -> str:
    if costs.empty:
        return ""
    total = costs.to_dict("records")[0]
    unknown = int(total["without_cost"])
    words = (
        "Tokens and dollars are of recorded answers; those of a call with several questions are divided among them. "
    )
    words += "Seconds are of whole calls."
    return f"{words} The price of {unknown:,} answers is unknown." if unknown else words


def seconds_words(row: Mapping[Any, Any]) -> str:
    """Return the median of a call's seconds, "" if unknown."""
    return "" if row["seconds_median"] != row["seconds_median"] else f"{row['seconds_median']:.2f} s a call (median)"


def _whole(value: float) -> str:
    return "" if value != value else f"{value:,.0f}"
