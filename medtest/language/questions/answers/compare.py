"""Comparison of typed answers.

Sets of names are compared by any-hit (a common name), Jaccard's index, and equality. "Yes" is a weaker form of an
answer with named findings. Disjoint intervals are a flip; an interval that contains the other is weaker, one within it
stronger. Two intervals that share only an end ("5-10", "10-20") are disjoint. The official size class 11-20 begins at
the end of 5-10. "About" spans 20 % on either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from medtest.language.questions.answers.extract.place import row_and_column
from medtest.language.questions.answers.kinds import KINDS, AnswerKind
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.values import NO, YES, Kind, Names, Range, Ranges, Value, Words

ABOUT = 0.2
"""Relative tolerance of "about" on either side."""

_FUNCTION = (
    "this that these those it its is are was were be been has have had there here and or but of in on at to from by "
    "with for as into over i we you image picture scan shows shown showing seen see visible appears"
)
FUNCTION_WORDS = frozenset(_FUNCTION.split())
"""Function words of free answers; two answers that share only these have nothing in common."""


class Change(StrEnum):
    """Change from one answer to another."""

    SAME = "same"
    WEAKER = "weaker"
    STRONGER = "stronger"
    OVERLAP = "overlap"
    FLIP = "flip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Comparison of an answer with a reference.

    Attributes:
        any_hit: True if they share a value.
        exact: True if they are equal; an interval within the expected one also counts.
        jaccard: Size of the intersection by size of the union, in [0, 1]; for intervals 1 if exact, else 0.
        change: ``weaker``, ``stronger`` (intervals, unnamed findings), ``overlap`` (crossing intervals) or ``flip``.
        distance: King moves on the 3 x 3 grid between the nearest cells, 0 to 2; None for other types.
    """

    any_hit: bool
    exact: bool
    jaccard: float
    change: Change
    distance: int | None = None


def compare(answer: Answer, other: Answer, *, tolerance: int = 0) -> Comparison | None:
    """Compare an answer with that to the source, or with the truth.

    Two answers "not relevant" are equal; "not relevant" and a value are a flip. Refusals and unparsed answers on either
    side are not compared.

    Args:
        answer: The answer.
        other: The reference.
        tolerance: King moves within which places count as equal.

    Returns:
        None if either has neither a value nor the state ``not_relevant``.
    """
    settled = (State.VALUE, State.NOT_RELEVANT)
    if answer.state not in settled or other.state not in settled:
        return None
    if answer.value is None or other.value is None:
        equal = answer.state == other.state
        return Comparison(
            any_hit=equal, exact=equal, jaccard=float(equal), change=Change.SAME if equal else Change.FLIP
        )
    return compare_values(answer.value, other.value, answer.kind, tolerance=tolerance)


def compare_values(value: Value, other: Value, kind: Kind, *, tolerance: int = 0) -> Comparison:
    """Compare two values of one kind; see :func:`compare`.

    Raises:
        TypeError: Their types differ.
    """
    if isinstance(value, Ranges) and isinstance(other, Ranges):
        return _compare_ranges(value, other, whole=KINDS[kind].counts)
    if isinstance(value, Names) and isinstance(other, Names):
        return _compare_names(value.names, other.names, KINDS[kind], tolerance)
    if isinstance(value, Words) and isinstance(other, Words):
        return _compare_words(value.text.split(), other.text.split())
    raise TypeError(f"{type(value).__name__} and {type(other).__name__} cannot be compared")


def king_distance(cell: str, other: str) -> int:
    """Return the number of king moves between two cells of the 3 x 3 grid: 0, 1 or 2.

    Args:
        cell: One of :data:`medtest.language.questions.answers.extract.place.CELLS`.
        other: Another cell.
    """
    (row, column), (row_2, column_2) = row_and_column(cell), row_and_column(other)
    return max(abs(row - row_2), abs(column - column_2))


def _compare_names(answered: frozenset[str], reference: frozenset[str], kind: AnswerKind, tolerance: int) -> Comparison:
    if kind.unnamed and (YES in answered) != (YES in reference) and NO not in answered | reference:
        change = Change.WEAKER if YES in answered else Change.STRONGER
        return Comparison(any_hit=True, exact=False, jaccard=0.0, change=change)
    common, union = answered & reference, answered | reference
    distance: int | None = None
    any_hit, exact = bool(common), answered == reference
    if kind.on_grid:
        distance = min(king_distance(a, b) for a in answered for b in reference)
        any_hit = distance <= tolerance
        exact = exact or (
            tolerance > 0 and _near(answered, reference, tolerance) and _near(reference, answered, tolerance)
        )
    change = Change.SAME if exact else Change.FLIP
    return Comparison(any_hit=any_hit, exact=exact, jaccard=len(common) / len(union), change=change, distance=distance)


def _near(cells: frozenset[str], reference: frozenset[str], tolerance: int) -> bool:
    return all(min(king_distance(cell, target) for target in reference) <= tolerance for cell in cells)


def _compare_words(answered: list[str], reference: list[str]) -> Comparison:
    common, union = set(answered) & set(reference), set(answered) | set(reference)
    exact = answered == reference
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
        """Return True if another interval lies within this one."""
        above = other.low > self.low or (other.low == self.low and (not self.low_open or other.low_open))
        below = other.high < self.high or (other.high == self.high and (not self.high_open or other.high_open))
        return above and below

    def meets(self, other: _Ends) -> bool:
        """Return True if two intervals share more than an end."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low < high:
            return True
        point = self if self.low == self.high else other
        return point.low == point.high and self.holds(point) and other.holds(point)


def _compare_ranges(value: Ranges, other: Ranges, *, whole: bool) -> Comparison:
    answered, expected = ([_ends(interval, whole=whole) for interval in operand.ranges] for operand in (value, other))
    if answered == expected:
        return Comparison(any_hit=True, exact=True, jaccard=1.0, change=Change.SAME)
    hit = any(interval.meets(two) for interval in answered for two in expected)
    inside = all(any(two.holds(interval) for two in expected) for interval in answered)
    inside = inside and all(any(two.holds(interval) for interval in answered) for two in expected)
    outside = all(any(interval.holds(two) for interval in answered) for two in expected)
    outside = outside and all(any(interval.holds(two) for two in expected) for interval in answered)
    change = Change.STRONGER if inside else Change.WEAKER if outside else Change.OVERLAP
    change = change if hit else Change.FLIP
    return Comparison(any_hit=hit, exact=inside, jaccard=float(inside), change=change)


def _ends(interval: Range, *, whole: bool) -> _Ends:
    if whole:
        # A count of 2 to 3 covers 1.5 to 3.5, so that adjacent whole numbers are disjoint.
        return _Ends(interval.low - 0.5, interval.high + 0.5, low_open=False, high_open=False)
    if interval.about:
        return _Ends(interval.low * (1 - ABOUT), interval.high * (1 + ABOUT), low_open=False, high_open=False)
    if (interval.low, interval.high) == (11.0, 20.0):
        return _Ends(10.0, 20.0, low_open=True, high_open=False)
    return _Ends(interval.low, interval.high, interval.low_open, interval.high_open)
