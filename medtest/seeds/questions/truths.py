"""Checks of true answers: those of no use for comparison are counted before a run."""

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
"""Kinds of answers that are recognised by form."""


def contradicts(question: Question, answers: Sequence[str]) -> bool:
    """Return True if the true answers to a yes-no question contain both."""
    if KINDS[question.kind].choices != frozenset((YES, NO)) or len(answers) < 2:
        return False
    return len({str(question.parse_truth((answer,))) for answer in answers} & {YES, NO}) == 2


def unusable(question: Question, answers: Sequence[str]) -> str:
    """Describe why true answers are of no use; "" if they are usable or there are none."""
    if not answers or KINDS[question.kind].free:
        return ""
    if contradicts(question, answers):
        return "both yes and no"
    if question.parse_truth(tuple(answers)).state in (State.VALUE, State.NOT_RELEVANT):
        return ""
    kind = _SAID.get(question.kind, f"a {question.kind.value}")
    return f"{'; '.join(answers)[:40]!r} for {kind}"


def odd_truths(pairs: Sequence[tuple[Question, Sequence[str]]]) -> str:
    """Describe true answers of another kind than nearly all others of their question; "" without any.

    Free-text questions are compared by their words, so "maybe" among yes and no, or "5 mm" among counts, would count
    like any other answer, but is usually a slip.
    """
    by_name: dict[str, list[str]] = {}
    for question, answers in pairs:
        if KINDS[question.kind].free:
            by_name.setdefault(question.name, []).extend(answers)
    counts: Counter[str] = Counter()
    for texts in by_name.values():
        for words, fits in _PLAIN.items():
            odd = [answer for answer in texts if not fits(answer)]
            if 0 < len(odd) <= _ODD_SHARE * len(texts):
                counts.update(f"{answer[:40]!r} among {words}" for answer in odd)
    return (
        f"True answers unlike the others of their question, compared word by word: {_count_list(counts)}."
        if counts
        else ""
    )


def truths_notice(pairs: Iterable[tuple[Question, Sequence[str]]]) -> str:
    """Describe how many questions have unusable true answers, and which; "" for none."""
    counts = Counter(why for question, answers in pairs if (why := unusable(question, answers)))
    if not counts:
        return ""
    total = sum(counts.values())
    subject = "1 true answer is" if total == 1 else f"{total:,} true answers are"
    return f"{subject} unusable and count as unknown: {_count_list(counts)}."


def _count_list(counts: Counter[str]) -> str:
    named = ", ".join(f"{why} ({count:,})" for why, count in counts.most_common(_MOST_NAMED))
    return named + (f" and {len(counts) - _MOST_NAMED:,} others" if len(counts) > _MOST_NAMED else "")
