"""Accuracy in the report: table by question, averages, and flips hidden by a difference of averages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.report.pages.words import counted, question_words, with_interval
from medtest.results.published.published_answers import SOURCE as PUBLISHED
from medtest.tasks.ask.tables.accuracy import AVERAGE_14, AVERAGE_18
from medtest.tasks.ask.tables.hidden import Hidden
from medtest.tasks.ask.tables.results import AnswerTables

_AVERAGED = ("source", "perturbed", "difference", "source_exact", "f1", "recall", "mcc")
"""Figures of a question that are averaged."""


def the_average(tables: AnswerTables) -> dict[str, Any] | None:
    """Return the row of accuracies that gives "original less average", or None without any truth.

    It is the published average over the 18 questions, else over the 14 kept ones; if a suite asks other questions, or
    lacks truth for some, the plain mean over the questions with truth, which is then also in the page's table.
    """
    table = tables.accuracy
    with_truth = table[table["difference"].notna()]
    for name in (AVERAGE_18, AVERAGE_14):
        for row in with_truth[with_truth["item"] == name].to_dict("records"):
            return {str(key): value for key, value in row.items()}
    items = [str(item) for item in with_truth["item"] if item not in (AVERAGE_18, AVERAGE_14)]
    if not items:
        return None
    selected = with_truth[with_truth["item"].isin(items)]
    figures = {name: selected[name].mean(skipna=False) for name in selected.columns if name in _AVERAGED}
    return {"item": f"average of {len(items)}", "question": "", "cases": selected["cases"].sum(), **figures}


def average_words(average: Mapping[str, Any]) -> str:
    """Return a description of an average."""
    if average["item"] in (AVERAGE_18, AVERAGE_14):
        return f"{average['item']} questions"
    count = str(average["item"]).rpartition(" ")[2]
    return "one question" if count == "1" else f"average of {count} questions"


def hidden_words(tables: AnswerTables) -> str:
    """Return the sentence with both numbers: the difference of accuracies in the table, and the flips it hides."""
    average, hidden = the_average(tables), tables.hidden
    if average is None or hidden is None:
        return ""
    words = (
        f"Original less average is {average['difference']:+.3f} ({average_words(average)}: {average['source']:.3f} to "
        f"{average['perturbed']:.3f})."
    )
    if not hidden.judged:
        return f"{words} No answer with a known truth was judged under a relation, so it hides no flips."
    words += f" It hides flips, because flips in opposite directions cancel out: {_flipped(hidden)}. {_pooled(hidden)}"
    if hidden.example is not None:
        example = hidden.example
        words += f" Most are hidden for {question_words(example.item)}: {_flipped(example)}. {_pooled(example)}"
    return words


def _flipped(counts: Hidden) -> str:
    return (
        f"{counts.flipped:,} of {counted(counts.judged, 'answer')} with a known truth "
        f"flipped ({100 * counts.flips:.1f} %); "
        f"{counts.lost:,} went from right to wrong, {counts.won:,} from wrong to right, "
        f"{counts.sideways:,} from one wrong "
        "answer to another"
    )


def _pooled(counts: Hidden) -> str:
    """Return the accuracy of the cases whose flips are counted, which are weighted differently from the average."""
    subject = "this one is" if counts.cases == 1 else f"these {counts.cases:,} are"
    return f"Pooled, {subject} right in {100 * counts.source:.1f} % before and {100 * counts.after:.1f} % after."


def accuracy_rows(tables: AnswerTables) -> list[dict[str, Any]]:
    """Return the table of accuracies by question, averages last."""
    rows = []
    table: list[Mapping[Any, Any]] = list(tables.accuracy.to_dict("records"))
    average, items = the_average(tables), set(tables.accuracy["item"])
    if average is not None and average["item"] not in items and len(items) > 1:
        table.append({**dict.fromkeys(tables.accuracy.columns, float("nan")), **average})
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
                if tables.simulated
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
    """Return a figure and its interval, each "" if missing."""
    value, _, ends = with_interval(row, name, signed=signed).partition(" (")
    return value, ends.removesuffix(")").replace(" to ", "\N{EN DASH}" if not signed else " to ")


def published_words(tables: AnswerTables) -> str:
    """Return the source of the published figures, or the reason why they are not shown."""
    if tables.simulated:
        return "Published figures of GPT-4V are shown for real systems only, not for a simulation."
    words = (
        f"{PUBLISHED}: accuracy as printed on the slides, Wilson's interval for 182 images. How answers were scored is "
    )
    words += "unknown, and 15 of the 18 accuracies are not fractions of 182."
    if tables.phantom:
        words += " They are of a real product on real images, so these rows do not reproduce them."
    return words
