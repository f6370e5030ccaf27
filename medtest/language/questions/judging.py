"""One answer judged both ways, by the answer to the source and by the truth: what oracle and tables share."""

from __future__ import annotations

from dataclasses import dataclass

from medtest.core.cases import Verdict
from medtest.language.questions.answers.compare import Comparison, compare
from medtest.language.questions.answers.kinds import KINDS
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.expectations import (
    Inserted,
    Judgement,
    judge_against_source,
    judge_against_truth,
    wanted_value,
)
from medtest.language.questions.matrix import Expectation, Rule
from medtest.language.questions.values import YES, names
from medtest.language.questions.wording import NOT_RELEVANT


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of one answer.

    Attributes:
        expected: The cell of the matrix.
        by_source: The metamorphic verdict; None for the source image itself, or where it has no answer.
        by_truth: The verdict against the truth.
        beside_truth: The answer beside the source's truth; None without a truth, or without a value.
    """

    expected: Expectation
    by_source: Judgement | None
    by_truth: Judgement
    beside_truth: Comparison | None

    @property
    def same(self) -> float | None:
        """1 where the answer is as the source's lets expect, 0 where it flipped; None where that is not judged."""
        return _number(self.by_source)

    @property
    def right(self) -> float | None:
        """1 where the answer has something in common with the truth, 0 where not; None where that is not judged."""
        return _number(self.by_truth)

    @property
    def exact(self) -> float | None:
        """1 where the answer says what the truth says, else 0; None where the source's truth may not hold any more."""
        if self.right is None or self.expected.rule != Rule.INVARIANT:
            return None
        return float(self.beside_truth is not None and self.beside_truth.exact)

    @property
    def jaccard(self) -> float | None:
        """Jaccard's index of answer and truth, as :attr:`exact`."""
        if self.right is None or self.expected.rule != Rule.INVARIANT:
            return None
        return self.beside_truth.jaccard if self.beside_truth is not None else 0.0


def judge(
    expected: Expectation,
    answer: Answer,
    *,
    source: Answer | None,
    truth: Answer | None,
    inserted: Inserted | None = None,
    tolerance: int = 0,
) -> Judged:
    """Judge an answer both ways.

    Args:
        expected: The cell of the matrix; ``invariant`` for the source image itself.
        answer: The answer.
        source: The answer to the source; None for the source image itself, or where it has none.
        truth: The true answer to the source image; None where none is known.
        inserted: What the relation put into the image.
        tolerance: King moves within which places count as the same.
    """
    by_source = None
    if source is not None:
        by_source = judge_against_source(expected, answer, source, inserted=inserted, tolerance=tolerance)
    return Judged(
        expected=expected,
        by_source=by_source,
        by_truth=judge_against_truth(expected, answer, truth, inserted=inserted, tolerance=tolerance),
        beside_truth=None if truth is None else compare(answer, truth, tolerance=tolerance),
    )


def said(answer: Answer) -> str:
    """Return an answer's canonical text: its value, ``not relevant``, or "" for a refusal and what was not read."""
    if answer.value is not None:
        return str(answer.value)
    return NOT_RELEVANT if answer.state == State.NOT_RELEVANT else ""


def wanted_text(expected: Expectation, answer: Answer, source: Answer | None, inserted: Inserted | None) -> str:
    """Return what the answer should say, "" where nothing is expected or it is not known."""
    if source is None or expected.rule in (Rule.MAY_CHANGE, Rule.SKIP):
        return ""
    if expected.rule == Rule.INVARIANT:
        return said(source)
    at_inserted = expected.value == "@inserted"
    if (at_inserted or expected.value == "+inserted") and inserted is None:
        return ""
    if at_inserted and inserted is not None and not inserted.cells:
        return ""
    if expected.value.startswith("+") and source.state in (State.UNPARSED, State.REFUSAL):
        return ""
    wanted = wanted_value(expected, answer.kind, source, inserted)
    if KINDS[answer.kind].unnamed and inserted is not None and inserted.names and wanted == names(YES):
        wanted = names(YES, *inserted.names)
    return str(wanted)


def _number(judged: Judgement | None) -> float | None:
    if judged is None or judged.verdict == Verdict.SKIP:
        return None
    return float(judged.verdict == Verdict.PASS)
