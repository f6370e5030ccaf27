"""The clauses that a value rests on, and what in them speaks against any value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.scope import clauses, negated
from medtest.language.questions.answers.values.readings import Found
from medtest.language.questions.answers.whole.words import QUOTED, WORD, unknown

_TEXTS = texts(__file__)
_EITHER = re.compile(_TEXTS["either"])
"""What sets one candidate against another, or says what is not so."""
_BUILT = re.compile(r"[{[=(][^\n]*[{[=]|\{[^{}\n]*:|\d\s*/\s*\d|[a-z)]\s+[-+](?=\s*(?:[/,;]|\Z|\w+\s+[-+](?:\s|\Z)))")
"""What is left of fields that could not be told apart."""
_NO_MORE = re.compile(_TEXTS["no_more"])
"""Words beside a "none" that name nothing."""
_TENTATIVE = re.compile(_TEXTS["tentative"])
_CONTRAST = re.compile(r"[\s,;]*(?:but|yet|however|though|although|whereas|while|aber|pero|mais|mas)\b,?\s{0,2}\w")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text and the part of it that a value rests on.

    Attributes:
        low: The plain text in lower case, without what is no answer.
        start: First character of what the value was read from.
        end: Its end.
        part: The clauses that it touches.
        first: Where they begin.
    """

    low: str
    start: int
    end: int
    part: str
    first: int

    @classmethod
    def of(cls, low: str, found: Found) -> Passage:
        """Return the passage of a value that was found."""
        first, last = _around(low, found[1], found[2])
        return cls(low, found[1], found[2], low[first:last], first)

    @property
    def said(self) -> str:
        """What the value was read from."""
        return self.low[self.start : self.end]

    def holds(self, place: int) -> bool:
        """Say whether the value was read from what stands at a place."""
        return self.start <= place < self.end


def part_around(low: str, start: int, end: int) -> str:
    """Return the clauses that a place touches."""
    return low[slice(*_around(low, start, end))]


def unclear(passage: Passage) -> str:
    """Return what of the clauses is not understood whatever was asked, in a few words; "" where all is."""
    low, part, behind = passage.low, passage.part, passage.first + len(passage.part)
    if strange := unknown(part):
        return f"unknown {strange}"
    if (asked := part.find("?")) >= 0 and low[passage.first + asked + 1 :].strip():
        return "question"
    if _CONTRAST.match(low, behind) and _TENTATIVE.search(part):
        return "what was not meant"
    if (built := _BUILT.search(QUOTED.sub(" ", part))) is not None:
        return f"fields {built[0]}"
    either = _EITHER.search(part)
    return "" if either is None else f"either {either[0]}"


def left_over_of_nothing(low: str, thing: str, start: int, end: int) -> str:
    """Return what is left unexplained of a text that says there is nothing to describe.

    Args:
        low: The plain text in lower case, without what is no answer.
        thing: Pattern of what may not be there.
        start: First character of the words that say so.
        end: Their end.
    """
    first, last = _around(low, start, end)
    if strange := unknown(low[first:last]):
        return f"unknown {strange}"
    things = [one.span() for one in re.finditer(rf"\b{thing}\b", low)]
    beside = [word for word in WORD.findall(f"{low[first:start]} {low[end:last]}") if not _NO_MORE.fullmatch(word)]
    if beside and not any(first <= place[0] < last for place in things):
        return f"nothing of {beside[0]}"
    there = [place for place in things if not (first <= place[0] < last) and not negated(low, *place)]
    return f"there is {low[slice(*there[0])]}" if there else ""


def _around(low: str, start: int, end: int) -> tuple[int, int]:
    """Return first character and end of the clauses that a place touches."""
    touched = [(first, last) for first, last in clauses(low) if first < max(end, start + 1) and start < last]
    return (touched[0][0], touched[-1][1]) if touched else (0, len(low))
