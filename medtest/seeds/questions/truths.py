"""True answers that say nothing a question of their type could be compared with: counted before a run, not after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from medtest.language.questions.answers.kinds import KINDS
from medtest.language.questions.answers.values.answer import State
from medtest.language.questions.questions import Question
from medtest.language.questions.values import NO, YES, Kind

_SAID = {Kind.YES_NO: "yes or no", Kind.COUNT: "a count"}
_MOST_NAMED = 4
_ODD_SHARE = 1 / 3
_PLAIN: Mapping[str, Callable[[str], bool]] = {
    "yes and no": lambda answer: answer.strip().lower().rstrip(".") in (YES, NO),
    "counts": lambda answer: answer.strip().isdecimal(),
}
"""Kinds that an answer shows at first sight."""


def contradicts(question: Question, answers: Sequence[str]) -> bool:
    """Say whether true answers to a question of yes or no say both."""
    if KINDS[question.kind].choices != frozenset((YES, NO)) or len(answers) < 2:
        return False
    return len({str(question.parse_truth((answer,))) for answer in answers} & {YES, NO}) == 2


def unusable(question: Question, answers: Sequence[str]) -> str:
    """Return what makes true answers useless, in words; "" where they are of use, or where there are none."""
    if not answers or KINDS[question.kind].free:
        return ""
    if contradicts(question, answers):
        return "both yes and no"
    if question.parse_truth(tuple(answers)).state in (State.VALUE, State.NOT_RELEVANT):
        return ""
    kind = _SAID.get(question.kind, f"a {question.kind.value}")
    return f"{'; '.join(answers)[:40]!r} for {kind}"


def odd_truths(asked: Sequence[tuple[Question, Sequence[str]]]) -> str:
    """Return which true answers are of another kind than nearly all of their question's, in words; "" for none.

    Questions of free text are compared by their words: "maybe" among yes and no, or "5 mm" among counts, is then an
    answer like any other, and mostly a slip of who wrote it.
    """
    by_name: dict[str, list[str]] = {}
    for question, answers in asked:
        if KINDS[question.kind].free:
            by_name.setdefault(question.name, []).extend(answers)
    counts: Counter[str] = Counter()
    for given in by_name.values():
        for words, fits in _PLAIN.items():
            odd = [answer for answer in given if not fits(answer)]
            if 0 < len(odd) <= _ODD_SHARE * len(given):
                counts.update(f"{answer[:40]!r} among {words}" for answer in odd)
    return (
        f"True answers unlike the others of their question, compared word by word: {_named(counts)}." if counts else ""
    )


def truths_notice(asked: Iterable[tuple[Question, Sequence[str]]]) -> str:
    """Return how many questions have a true answer that is of no use, and which these are; "" for none."""
    counts = Counter(why for question, answers in asked if (why := unusable(question, answers)))
    if not counts:
        return ""
    total = sum(counts.values())
    said = "1 true answer is" if total == 1 else f"{total:,} true answers are"
    return f"{said} of no use and count as unknown: {_named(counts)}."


def _named(counts: Counter[str]) -> str:
    named = ", ".join(f"{why} ({count:,})" for why, count in counts.most_common(_MOST_NAMED))
    return named + (f" and {len(counts) - _MOST_NAMED:,} others" if len(counts) > _MOST_NAMED else "")
