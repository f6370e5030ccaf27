"""One row an answer: what the tables of flips and accuracy are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from medtest.cases import Verdict
from medtest.vqa.answers.answer import Answer, State
from medtest.vqa.answers.compare import compare
from medtest.vqa.expectations import (
    Inserted,
    Judgement,
    Matrix,
    Rule,
    expectation,
    judge_against_source,
    judge_against_truth,
)
from medtest.vqa.questions import Question

if TYPE_CHECKING:
    import pandas as pd

SOURCE, UNCHANGED = "source", "unchanged"
"""Names of two rows that are no relation: the source image, and the same image asked again."""

NOT_RELEVANT = "not relevant"

COLUMNS = (
    "image",
    "item",
    "relation",
    "severity",
    "repeat",
    "state",
    "said",
    "true",
    "rule",
    "flip",
    "change",
    "reason",
    "right",
    "exact",
    "source_right",
    "distance",
)
"""Of one row: ``item`` is the question's name. ``flip``, ``right``, ``exact`` and ``source_right`` are 1, 0, or NaN
where that is not judged; ``flip`` of the source is NaN. ``said`` and ``true`` are canonical texts, ``true`` is empty
where no truth is known."""


def judged_row(
    *,
    image: str,
    question: Question,
    relation: str,
    answer: Answer,
    source: Answer,
    truth: Answer | None,
    matrix: Matrix,
    severity: int = 0,
    repeat: int = 0,
    inserted: Inserted | None = None,
    tolerance: int = 0,
) -> dict[str, Any]:
    """Judge one answer both ways and return its row.

    Args:
        image: The source image's id, which is what intervals resample.
        question: The question.
        relation: Relation's id; :data:`SOURCE` for the source image, :data:`UNCHANGED` for asking it again.
        answer: Answer to this image.
        source: Answer to the source image.
        truth: True answer to the source image; None where none is known.
        matrix: Expectations.
        severity: Severity.
        repeat: Number of the repetition.
        inserted: What the relation put into the image.
        tolerance: King moves within which places count as the same.
    """
    expected = expectation(matrix, relation, question)
    before = expectation({}, SOURCE, question)
    against_truth = judge_against_truth(expected, answer, truth, inserted=inserted, tolerance=tolerance)
    at_source = judge_against_truth(before, source, truth, tolerance=tolerance)
    flip = None
    if relation != SOURCE:
        flip = judge_against_source(expected, answer, source, inserted=inserted, tolerance=tolerance)
    compared = compare(answer, truth, tolerance=tolerance) if truth is not None else None
    judged = against_truth.verdict != Verdict.SKIP
    of_source = flip.comparison if flip is not None else None
    return {
        "image": image,
        "item": question.name,
        "relation": relation,
        "severity": severity,
        "repeat": repeat,
        "state": answer.state.value,
        "said": _said(answer, truth, exact=compared is not None and compared.exact),
        "true": "" if truth is None else _label(truth),
        "rule": expected.rule.value,
        "flip": _number(flip, Verdict.FAIL),
        "change": of_source.change.value if of_source is not None else "",
        "reason": (flip or against_truth).reason,
        "right": _number(against_truth, Verdict.PASS),
        "exact": _exact(compared is not None and compared.exact, expected.rule, judged=judged),
        "source_right": _number(at_source, Verdict.PASS),
        "distance": float("nan") if of_source is None or of_source.distance is None else of_source.distance,
    }


def frame_of(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as a table with exactly :data:`COLUMNS`."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def _number(judged: Judgement | None, one: Verdict) -> float:
    if judged is None or judged.verdict == Verdict.SKIP:
        return float("nan")
    return float(judged.verdict == one)


def _exact(exact: bool, rule: Rule, *, judged: bool) -> float:
    """Return 1 or 0 where the source's truth still holds, NaN where it does not or nothing was judged."""
    return float(exact) if judged and rule == Rule.INVARIANT else float("nan")


def _label(answer: Answer) -> str:
    if answer.value is not None:
        return str(answer.value)
    return NOT_RELEVANT if answer.state == State.NOT_RELEVANT else ""


def _said(answer: Answer, truth: Answer | None, *, exact: bool) -> str:
    """Return an answer's canonical text, or the truth's where it says no less: "12 mm" is the class 11-20 mm."""
    return _label(truth) if exact and truth is not None else _label(answer)
