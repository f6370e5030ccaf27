"""Accuracy in the report: the table question by question, its averages, and what a difference of averages hides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.report.pages.words import counted, question_words, with_interval
from medtest.results.published.published_answers import SOURCE as PUBLISHED
from medtest.tasks.ask.tables.accuracy import AVERAGE_14, AVERAGE_18
from medtest.tasks.ask.tables.hidden import Hidden
from medtest.tasks.ask.tables.results import AnswerTables

_AVERAGED = ("source", "perturbed", "difference", "source_exact", "f1", "recall", "mcc")
"""Figures of a question that an average is taken of."""


def the_average(found: AnswerTables) -> dict[str, Any] | None:
    """Return the row of the table of accuracies that "original less average" is read from; None without any truth.

    It is the published one, of the 18 questions, else of the 14 kept; where a suite asks others, or has no truth for
    some, the plain mean over the questions that have one, which the page's table then shows as well.
    """
    table = found.accuracy
    known = table[table["difference"].notna()]
    for name in (AVERAGE_18, AVERAGE_14):
        for row in known[known["item"] == name].to_dict("records"):
            return {str(key): value for key, value in row.items()}
    asked = [str(item) for item in known["item"] if item not in (AVERAGE_18, AVERAGE_14)]
    if not asked:
        return None
    own = known[known["item"].isin(asked)]
    figures = {name: own[name].mean(skipna=False) for name in own.columns if name in _AVERAGED}
    return {"item": f"average of {len(asked)}", "question": "", "cases": own["cases"].sum(), **figures}


def average_words(average: Mapping[str, Any]) -> str:
    """Return what an average is of."""
    if average["item"] in (AVERAGE_18, AVERAGE_14):
        return f"{average['item']} questions"
    count = str(average["item"]).rpartition(" ")[2]
    return "one question" if count == "1" else f"average of {count} questions"


def hidden_words(found: AnswerTables) -> str:
    """Return the sentence with both numbers: the difference of accuracies in the table, and the flips it hides."""
    average, hidden = the_average(found), found.hidden
    if average is None or hidden is None:
        return ""
    words = (
        f"Original less average is {average['difference']:+.3f} ({average_words(average)}: {average['source']:.3f} to "
        f"{average['perturbed']:.3f})."
    )
    if not hidden.judged:
        return f"{words} No answer with a known truth was judged under a relation: no flip can stand behind it."
    words += (
        f" Behind it {_flipped(hidden)}. A "
        "difference of averages cannot show this: flips in opposite directions cancel "
        f"out. {_pooled(hidden)}"
    )
    if hidden.example is not None:
        one = hidden.example
        words += f" Most is hidden of the question {question_words(one.item)}: {_flipped(one)}. {_pooled(one)}"
    return words


def _flipped(one: Hidden) -> str:
    return (
        f"{one.flipped:,} of {counted(one.judged, 'answer')} with a known truth flipped ({100 * one.flips:.1f} %); "
        f"{one.lost:,} went from right to wrong, {one.won:,} from wrong to right, {one.sideways:,} from one wrong "
        "answer to another"
    )


def _pooled(one: Hidden) -> str:
    """Return what the very cases whose flips are counted say of accuracy: they weigh otherwise than the average."""
    these = "this one is" if one.cases == 1 else f"these {one.cases:,} are"
    return f"Pooled, {these} right in {100 * one.source:.1f} % before and {100 * one.after:.1f} % after."


def accuracy_rows(found: AnswerTables) -> list[dict[str, Any]]:
    """Return the table of accuracies question by question, averages last."""
    rows = []
    table: list[Mapping[Any, Any]] = list(found.accuracy.to_dict("records"))
    average, items = the_average(found), set(found.accuracy["item"])
    if average is not None and average["item"] not in items and len(items) > 1:
        table.append({**dict.fromkeys(found.accuracy.columns, float("nan")), **average})
    for row in table:
        mean = row["item"] not in items or row["item"] in (AVERAGE_18, AVERAGE_14)
        rows.append(
            {
                "name": row["item"] if mean else question_words(str(row["item"])),
                "words": "" if mean else str(row["question"]),
                "sum": mean,
                "cases": f"{int(row['cases']):,}",
                "own": [_stacked(row, "source"), _stacked(row, "perturbed"), _stacked(row, "difference", signed=True)],
                "published": []
                if found.simulated
                else [
                    _stacked(row, "published_source"),
                    _stacked(row, "published_perturbed"),
                    _stacked(row, "published_difference", signed=True),
                ],
                "more": [with_interval(row, name) for name in ("source_exact", "f1", "recall", "mcc")],
            }
        )
    return rows


def _stacked(row: Mapping[Any, Any], name: str, *, signed: bool = False) -> tuple[str, str]:
    """Return a figure and its interval, each "" where there is none."""
    value, _, ends = with_interval(row, name, signed=signed).partition(" (")
    return value, ends.removesuffix(")").replace(" to ", "\N{EN DASH}" if not signed else " to ")


def published_words(found: AnswerTables) -> str:
    """Return where the published figures are from, or why they are not shown."""
    if found.simulated:
        return "The published figures of GPT-4V stand beside real systems only, never beside a simulation."
    words = f"{PUBLISHED}: accuracy as the slides print it, Wilson's interval for 182 images; how they scored is not "
    words += "known, and 15 of their 18 accuracies are no fraction of 182."
    if found.phantom:
        words += " They are of a real product on real images: these rows are no reproduction of them."
    return words
