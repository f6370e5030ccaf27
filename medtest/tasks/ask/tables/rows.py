"""One row an answer: what the tables of flips and accuracy are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from medtest.language.questions.answers.values.answer import Answer
from medtest.language.questions.expectations import Inserted
from medtest.language.questions.judging import judge, said
from medtest.language.questions.matrix import Matrix, expectation
from medtest.language.questions.questions import Question
from medtest.results.columns import columns_in

if TYPE_CHECKING:
    import pandas as pd

SOURCE, UNCHANGED = "source", "unchanged"
"""Names of two rows that are no relation: the source image, and the same image asked again."""

COLUMNS = columns_in(__file__, "rows")
"""Of one row: ``item`` is the question's name. ``flip``, ``right``, ``exact`` and ``source_right`` are 1, 0, or NaN
where that is not judged; ``flip`` of the source is NaN. ``said`` and ``true`` are canonical texts, ``true`` is empty
where no truth is known, and ``said`` is the truth's where it says no less: "12 mm" is the class 11-20 mm."""


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
    """Judge one answer both ways and return its row.

    Args:
        image: What intervals resample: the source image's id, or its patient's or video's.
        question: The question.
        relation: Relation's id; :data:`SOURCE` for the source image, :data:`UNCHANGED` for asking it again.
        answer: Answer to this image.
        source: Answer to the source image.
        truth: True answer to the source image; None where none is known.
        matrix: Expectations.
        severity: Severity.
        repeat: Number of the repetition.
        effects: What the relation does to the image (``Relation.effects``).
        inserted: What the relation put into the image.
        tolerance: King moves within which places count as the same.
    """
    expected = expectation(matrix, relation, question, effects=effects)
    before = expectation(Matrix(), SOURCE, question)
    found = judge(
        expected,
        answer,
        source=None if relation == SOURCE else source,
        truth=truth,
        inserted=inserted,
        tolerance=tolerance,
    )
    at_source = judge(before, source, source=None, truth=truth, tolerance=tolerance)
    by_source = found.by_source
    compared = by_source.comparison if by_source is not None else None
    exact = found.beside_truth is not None and found.beside_truth.exact
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
        "flip": float("nan") if found.same is None else 1.0 - found.same,
        "change": compared.change.value if compared is not None else "",
        "reason": (by_source or found.by_truth).reason,
        "right": _number(found.right),
        "exact": _number(found.exact),
        "source_right": _number(at_source.right),
        "distance": float("nan") if compared is None or compared.distance is None else compared.distance,
    }


def frame_of(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as a table with exactly :data:`COLUMNS`."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
