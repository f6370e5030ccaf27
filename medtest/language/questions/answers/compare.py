"""How two typed answers differ.

Sets of names are compared by any-hit (something in common), Jaccard's index, and exactly. "Yes" beside named findings
is the weaker form of the same answer. Intervals that have nothing in common are a flip; one that holds the other is
weaker, one that lies within it stronger. Two intervals that share only an end ("5-10", "10-20") have nothing in common.
The official size class 11-20 begins where 5-10 ends. "About" spans 20 % to either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from medtest.language.questions.answers.extract.place import row_and_column
from medtest.language.questions.answers.kinds import KINDS, AnswerKind
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.values import NO, YES, Kind, Names, Range, Ranges, Value, Words

ABOUT = 0.2
"""Share of a number that "about" leaves open on either side."""

_FUNCTION = (
    "this that these those it its is are was were be been has have had there here and or but of in on at to from by "
    "with for as into over i we you image picture scan shows shown showing seen see visible appears"
)
FUNCTION_WORDS = frozenset(_FUNCTION.split())
"""Words of free answers that say nothing of the matter: two answers that share no others have nothing in common."""


class Change(StrEnum):
    """What became of an answer beside another."""

    SAME = "same"
    WEAKER = "weaker"
    STRONGER = "stronger"
    OVERLAP = "overlap"
    FLIP = "flip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An answer beside the one it should agree with.

    Attributes:
        any_hit: They have something in common.
        exact: They say the same; an interval within the expected one says no less and counts too.
        jaccard: Size of what is common by size of the union, in [0, 1]; of intervals 1 where exact, else 0.
        change: ``weaker``, ``stronger`` (intervals, unnamed findings), ``overlap`` (crossing intervals) or ``flip``.
        distance: King moves on the 3 x 3 grid between the nearest cells, 0 to 2; None for what is no place.
    """

    any_hit: bool
    exact: bool
    jaccard: float
    change: Change
    distance: int | None = None


def compare(answer: Answer, other: Answer, *, tolerance: int = 0) -> Comparison | None:
    """Compare an answer with the one to the source, or with the truth.

    Two answers that both say "not relevant" are the same; one that says so beside a value is a flip. Refusals and
    unparsed answers on either side are not compared.

    Args:
        answer: The answer in question.
        other: What it should agree with.
        tolerance: King moves within which places count as the same.

    Returns:
        None where one of them has neither a value nor is ``not_relevant``.
    """
    settled = (State.VALUE, State.NOT_RELEVANT)
    if answer.state not in settled or other.state not in settled:
        return None
    if answer.value is None or other.value is None:
        same = answer.state == other.state
        return Comparison(any_hit=same, exact=same, jaccard=float(same), change=Change.SAME if same else Change.FLIP)
    return compare_values(answer.value, other.value, answer.kind, tolerance=tolerance)


def compare_values(value: Value, other: Value, kind: Kind, *, tolerance: int = 0) -> Comparison:
    """Compare two values of one kind; see :func:`compare`.

    Raises:
        TypeError: They are not of one type.
    """
    if isinstance(value, Ranges) and isinstance(other, Ranges):
        return _compare_ranges(value, other, whole=KINDS[kind].counts)
    if isinstance(value, Names) and isinstance(other, Names):
        return _compare_names(value.names, other.names, KINDS[kind], tolerance)
    if isinstance(value, Words) and isinstance(other, Words):
        return _compare_words(value.text.split(), other.text.split())
    raise TypeError(f"{type(value).__name__} and {type(other).__name__} cannot be compared")


def king_distance(cell: str, other: str) -> int:
    """Return the moves a king needs from a cell of the 3 x 3 grid to another: 0, 1 or 2.

    Args:
        cell: One of :data:`medtest.language.questions.answers.extract.place.CELLS`.
        other: Another.
    """
    (row, column), (row_2, column_2) = row_and_column(cell), row_and_column(other)
    return max(abs(row - row_2), abs(column - column_2))


def _compare_names(found: frozenset[str], other: frozenset[str], kind: AnswerKind, tolerance: int) -> Comparison:
    if kind.unnamed and (YES in found) != (YES in other) and NO not in found | other:
        change = Change.WEAKER if YES in found else Change.STRONGER
        return Comparison(any_hit=True, exact=False, jaccard=0.0, change=change)
    common, union = found & other, found | other
    distance: int | None = None
    any_hit, exact = bool(common), found == other
    if kind.on_grid:
        distance = min(king_distance(a, b) for a in found for b in other)
        any_hit = distance <= tolerance
        exact = exact or (tolerance > 0 and _near(found, other, tolerance) and _near(other, found, tolerance))
    change = Change.SAME if exact else Change.FLIP
    return Comparison(any_hit=any_hit, exact=exact, jaccard=len(common) / len(union), change=change, distance=distance)


def _near(found: frozenset[str], other: frozenset[str], tolerance: int) -> bool:
    return all(min(king_distance(cell, one) for one in other) <= tolerance for cell in found)


def _compare_words(found: list[str], other: list[str]) -> Comparison:
    common, union = set(found) & set(other), set(found) | set(other)
    exact = found == other
    jaccard = len(common) / len(union) if union else float(exact)
    change = Change.SAME if exact else Change.FLIP
    return Comparison(any_hit=bool(common - FUNCTION_WORDS) or exact, exact=exact, jaccard=jaccard, change=change)


# ------------------------------------------------------------------------------------------------------- intervals


@dataclass(frozen=True, slots=True)
class _Ends:
    low: float
    high: float
    low_open: bool
    high_open: bool

    def holds(self, other: _Ends) -> bool:
        """Say whether another interval lies within this one."""
        above = other.low > self.low or (other.low == self.low and (not self.low_open or other.low_open))
        below = other.high < self.high or (other.high == self.high and (not self.high_open or other.high_open))
        return above and below

    def meets(self, other: _Ends) -> bool:
        """Say whether two intervals have more than an end in common."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low < high:
            return True
        point = self if self.low == self.high else other
        return point.low == point.high and self.holds(point) and other.holds(point)


def _compare_ranges(value: Ranges, other: Ranges, *, whole: bool) -> Comparison:
    found, wanted = ([_ends(one, whole=whole) for one in both.ranges] for both in (value, other))
    if found == wanted:
        return Comparison(any_hit=True, exact=True, jaccard=1.0, change=Change.SAME)
    hit = any(one.meets(two) for one in found for two in wanted)
    inside = all(any(two.holds(one) for two in wanted) for one in found)
    inside = inside and all(any(two.holds(one) for one in found) for two in wanted)
    outside = all(any(one.holds(two) for one in found) for two in wanted)
    outside = outside and all(any(one.holds(two) for two in wanted) for one in found)
    if not hit:
        change = Change.FLIP
    elif inside:
        change = Change.STRONGER
    elif outside:
        change = Change.WEAKER
    else:
        change = Change.OVERLAP
    return Comparison(any_hit=hit, exact=inside, jaccard=float(inside), change=change)


def _ends(one: Range, *, whole: bool) -> _Ends:
    if whole:
        # A count of 2 to 3 is the numbers from 1.5 to 3.5: whole numbers next to each other have nothing in common.
        return _Ends(one.low - 0.5, one.high + 0.5, low_open=False, high_open=False)
    if one.about:
        return _Ends(one.low * (1 - ABOUT), one.high * (1 + ABOUT), low_open=False, high_open=False)
    if (one.low, one.high) == (11.0, 20.0):
        return _Ends(10.0, 20.0, low_open=True, high_open=False)
    return _Ends(one.low, one.high, one.low_open, one.high_open)
