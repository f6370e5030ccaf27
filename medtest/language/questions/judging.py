"""Judgement of an answer by the source's answer and by the truth, shared by oracle and tables."""

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
    without_target,
)
from medtest.language.questions.matrix import Expectation, Rule
from medtest.language.questions.values import YES, names
from medtest.language.questions.wording import NOT_RELEVANT


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Judgement of one answer.

    Attributes:
        expected: Cell of the matrix.
        by_source: Metamorphic verdict; None for the source image itself, or without an answer to it.
        by_truth: Verdict against the truth.
        beside_truth: Comparison with the source's truth; None without a truth or a value.
    """

    expected: Expectation
    by_source: Judgement | None
    by_truth: Judgement
    beside_truth: Comparison | None

    @property
    def same(self) -> float | None:
        """1 if the answer is consistent with the source's, 0 if it flipped; None if not judged."""
        return _number(self.by_source)

    @property
    def right(self) -> float | None:
        """1 if the answer shares a value with the truth, 0 if not; None if not judged."""
        return _number(self.by_truth)

    @property
    def exact(self) -> float | None:
        """1 if the answer equals the truth, else 0; None if the source's truth may no longer hold."""
        if self.right is None or self.expected.rule != Rule.INVARIANT:
            return None
        return float(self.beside_truth is not None and self.beside_truth.exact)

    @property
    def jaccard(self) -> float | None:
        """Jaccard's index of answer and truth, under the conditions of :attr:`exact`."""
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
    """Judge an answer by the source's answer and by the truth.

    Args:
        expected: Cell of the matrix; ``invariant`` for the source image itself.
        answer: The answer.
        source: Answer to the source; None for the source image itself, or without one.
        truth: True answer to the source image; None if unknown.
        inserted: Objects that the relation inserted.
        tolerance: King moves within which places count as equal.
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
    """Return an answer's canonical text: its value, ``not relevant``, or "" for refusals and unparsed answers."""
    if answer.value is not None:
        return str(answer.value)
    return NOT_RELEVANT if answer.state == State.NOT_RELEVANT else ""


def wanted_text(expected: Expectation, answer: Answer, source: Answer | None, inserted: Inserted | None) -> str:
    """Return the expected text of an answer, "" without an expectation or if it is unknown."""
    if source is None or expected.rule not in (Rule.INVARIANT, Rule.MUST_BECOME):
        return ""
    if expected.rule == Rule.INVARIANT:
        return said(source)
    if without_target(expected, source, inserted):
        return ""
    target = wanted_value(expected, answer.kind, source, inserted)
    if KINDS[answer.kind].unnamed and inserted is not None and inserted.names and target == names(YES):
        target = names(YES, *inserted.names)
    return str(target)


def _number(judgement: Judgement | None) -> float | None:
    if judgement is None or judgement.verdict == Verdict.SKIP:
        return None
    return float(judgement.verdict == Verdict.PASS)
