"""Rows of answers that are judged without a run, as the tables of flips and accuracy take them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from medtest.language.questions.answers.values.answer import Answer
from medtest.language.questions.expectations import Inserted
from medtest.language.questions.judging import judge, said
from medtest.language.questions.matrix import Matrix, expectation
from medtest.language.questions.questions import Question
from medtest.tasks.ask.tables.rows import COLUMNS, SOURCE

if TYPE_CHECKING:
    import pandas as pd


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
    effects: Collection[str] = (),
    inserted: Inserted | None = None,
    tolerance: int = 0,
) -> dict[str, Any]:
    """Judge one answer against source and truth and return its row.

    Args:
        image: Resampling unit: id of the source image, or of its patient or video.
        question: The question.
        relation: Id of the relation; ``SOURCE`` for the source image, ``UNCHANGED`` for repeating the question.
        answer: Answer to this image.
        source: Answer to the source image.
        truth: True answer to the source image; None if unknown.
        matrix: Expectations.
        severity: Severity.
        repeat: Index of the repetition.
        effects: Effects of the relation on the image (``Relation.effects``).
        inserted: Objects that the relation inserted.
        tolerance: King moves within which places count as equal.
    """
    expected = expectation(matrix, relation, question, effects=effects)
    unperturbed = expectation(Matrix(), SOURCE, question)
    judged = judge(
        expected,
        answer,
        source=None if relation == SOURCE else source,
        truth=truth,
        inserted=inserted,
        tolerance=tolerance,
    )
    at_source = judge(unperturbed, source, source=None, truth=truth, tolerance=tolerance)
    by_source = judged.by_source
    comparison = by_source.comparison if by_source is not None else None
    exact = judged.beside_truth is not None and judged.beside_truth.exact
    return {
        "image": image,
        "item": question.name,
        "relation": relation,
        "severity": severity,
        "repeat": repeat,
        "state": answer.state.value,
        "said": said(truth) if exact and truth is not None else said(answer),
        "true": "" if truth is None else said(truth),
        "rule": expected.rule.value,
        "flip": float("nan") if judged.same is None else 1.0 - judged.same,
        "change": comparison.change.value if comparison is not None else "",
        "reason": (by_source or judged.by_truth).reason,
        "right": _number(judged.right),
        "exact": _number(judged.exact),
        "source_right": _number(at_source.right),
        "distance": float("nan") if comparison is None or comparison.distance is None else comparison.distance,
    }


def frame_of(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as a table with exactly ``COLUMNS``."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
