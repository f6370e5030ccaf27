"""True answers that say nothing a question of their type could be compared with: counted before a run, not after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from medtest.vqa.answers.answer import State
from medtest.vqa.questions import Question
from medtest.vqa.values import NO, YES, Kind

_KINDS = {Kind.YES_NO: "yes or no", Kind.COUNT: "a count"}
_MOST_NAMED = 4


def contradicts(question: Question, answers: Sequence[str]) -> bool:
    """Say whether true answers to a question of yes or no say both."""
    if question.kind is not Kind.YES_NO or len(answers) < 2:
        return False
    return len({str(question.parse_truth((answer,))) for answer in answers} & {YES, NO}) == 2


def unusable(question: Question, answers: Sequence[str]) -> str:
    """Return what makes true answers useless, in words; "" where they are of use, or where there are none."""
    if not answers or question.kind is Kind.TEXT:
        return ""
    if contradicts(question, answers):
        return "both yes and no"
    if question.parse_truth(tuple(answers)).state in (State.VALUE, State.NOT_RELEVANT):
        return ""
    kind = _KINDS.get(question.kind, f"a {question.kind.value}")
    return f"{'; '.join(answers)[:40]!r} for {kind}"


def truths_notice(asked: Iterable[tuple[Question, Sequence[str]]]) -> str:
    """Return how many questions have a true answer that is of no use, and which these are; "" for none."""
    counts = Counter(why for question, answers in asked if (why := unusable(question, answers)))
    if not counts:
        return ""
    total = sum(counts.values())
    named = ", ".join(f"{why} ({count:,})" for why, count in counts.most_common(_MOST_NAMED))
    more = f" and {len(counts) - _MOST_NAMED:,} others" if len(counts) > _MOST_NAMED else ""
    said = "1 true answer is" if total == 1 else f"{total:,} true answers are"
    return f"{said} of no use and count as unknown: {named}{more}."
