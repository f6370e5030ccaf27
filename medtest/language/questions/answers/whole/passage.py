"""Clauses that support a value, and general objections in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.scope import clauses, negated
from medtest.language.questions.answers.values.readings import Found
from medtest.language.questions.answers.whole.words import QUOTED, WORD, unknown

_TEXTS = texts(__file__)
_EITHER = re.compile(_TEXTS["either"])
"""Words that contrast candidates, or negate."""
_BUILT = re.compile(r"[{[=(][^\n]*[{[=]|\{[^{}\n]*:|\d\s*/\s*\d|[a-z)]\s+[-+](?=\s*(?:[/,;]|\Z|\w+\s+[-+](?:\s|\Z)))")
"""Remains of fields that could not be separated."""
_NO_MORE = re.compile(_TEXTS["no_more"])
"""Words next to "none" that name nothing."""
_TENTATIVE = re.compile(_TEXTS["tentative"])
_CONTRAST = re.compile(r"[\s,;]*(?:but|yet|however|though|although|whereas|while|aber|pero|mais|mas)\b,?\s{0,2}\w")


@dataclass(frozen=True, slots=True)
class Passage:
    """Text and the part of it that supports a value.

    Attributes:
        low: The plain text in lower case, without non-answers.
        start: First character of the reading.
        end: End of the reading.
        part: Clauses that overlap the reading.
        first: Start of these clauses.
    """

    low: str
    start: int
    end: int
    part: str
    first: int

    @classmethod
    def of(cls, low: str, reading: Found) -> Passage:
        """Return the passage of a reading."""
        first, last = _around(low, reading[1], reading[2])
        return cls(low, reading[1], reading[2], low[first:last], first)

    @property
    def said(self) -> str:
        """Text from which the value was read."""
        return self.low[self.start : self.end]

    def holds(self, place: int) -> bool:
        """Return True if a position is within the reading."""
        return self.start <= place < self.end


def part_around(low: str, start: int, end: int) -> str:
    """Return the clauses that overlap a span."""
    return low[slice(*_around(low, start, end))]


def unclear(passage: Passage) -> str:
    """Return the part of the clauses that is not understood for any question, in a few words; "" if there is none."""
    low, part, behind = passage.low, passage.part, passage.first + len(passage.part)
    if strange := unknown(part):
        return f"unknown {strange}"
    if (question_at := part.find("?")) >= 0 and low[passage.first + question_at + 1 :].strip():
        return "question"
    if _CONTRAST.match(low, behind) and _TENTATIVE.search(part):
        return "what was not meant"
    if (built := _BUILT.search(QUOTED.sub(" ", part))) is not None:
        return f"fields {built[0]}"
    either = _EITHER.search(part)
    return "" if either is None else f"either {either[0]}"


def left_over_of_nothing(low: str, noun: str, start: int, end: int) -> str:
    """Return the unexplained part of a text that says there is nothing to describe.

    Args:
        low: The plain text in lower case, without non-answers.
        noun: Pattern of the objects that may be absent.
        start: First character of the statement.
        end: End of the statement.
    """
    first, last = _around(low, start, end)
    if strange := unknown(low[first:last]):
        return f"unknown {strange}"
    objects = [match.span() for match in re.finditer(rf"\b{noun}\b", low)]
    beside = [word for word in WORD.findall(f"{low[first:start]} {low[end:last]}") if not _NO_MORE.fullmatch(word)]
    if beside and not any(first <= place[0] < last for place in objects):
        return f"nothing of {beside[0]}"
    present = [place for place in objects if not (first <= place[0] < last) and not negated(low, *place)]
    return f"there is {low[slice(*present[0])]}" if present else ""


def _around(low: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of the clauses that overlap a span."""
    touched = [(first, last) for first, last in clauses(low) if first < max(end, start + 1) and start < last]
    return (touched[0][0], touched[-1][1]) if touched else (0, len(low))
