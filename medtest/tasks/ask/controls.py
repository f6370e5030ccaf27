"""Judgement of answers under controls: whether an answer stays although its evidence is gone."""

from __future__ import annotations

from medtest.core.cases import Reason, ReasonCode
from medtest.core.oracles.controls import NOTHING_TO_LOSE
from medtest.language.questions.answers.compare import Change, compare
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.matrix import Rule
from medtest.language.questions.values import NO, Names, Ranges

UNTOUCHED = Reason(ReasonCode.ANSWER_MAY_CHANGE, "the control leaves the evidence for this answer, or part of it")
UNPARSED = Reason(ReasonCode.ANSWER_UNPARSED, "the answer has no value that can be parsed")
SOURCE_UNPARSED = Reason(ReasonCode.SOURCE_UNPARSED, "the answer to the source has no value that can be parsed")
SOURCE_REFUSED = Reason(ReasonCode.SOURCE_REFUSED, "the system refused to answer on the source")


def affirms(answer: Answer) -> bool:
    """Return True if an answer has a value other than no, none and zero."""
    if isinstance(answer.value, Names):
        return answer.value.names != {NO}
    if isinstance(answer.value, Ranges):
        return any(interval.high > 0 for interval in answer.value.ranges)
    return answer.value is not None


def kept_answer(rule: Rule, answer: Answer, source: Answer, *, tolerance: int = 0) -> float | Reason:
    """Return 1 if an answer is kept, 0 if it is lost, or the reason why that cannot be judged.

    Args:
        rule: ``must change``, which a kept answer violates; or ``must deny``, which every affirming answer violates.
        answer: Answer to the control.
        source: Answer to the source.
        tolerance: King moves within which places count as equal.
    """
    if rule not in (Rule.MUST_CHANGE, Rule.MUST_DENY):
        return UNTOUCHED
    if answer.state == State.UNPARSED:
        return UNPARSED
    if rule == Rule.MUST_DENY:
        return float(affirms(answer))
    if source.state in (State.UNPARSED, State.REFUSAL):
        return SOURCE_UNPARSED if source.state == State.UNPARSED else SOURCE_REFUSED
    if not affirms(source):
        return NOTHING_TO_LOSE
    comparison = compare(answer, source, tolerance=tolerance)
    return float(comparison is not None and comparison.change != Change.FLIP)
