"""Values of answers: names, ranges of numbers, or free text.

Three types serve the nine kinds of answer:

- :class:`Names`: a set. It holds yes or no, abnormalities, landmarks, instruments, colours, places, polyp types,
    procedures.
  For abnormalities, landmarks and instruments ``no`` means none and ``yes`` unnamed ones.
- :class:`Ranges`: counts, and sizes in millimetres, each an interval with open or closed ends.
- :class:`Words`: the words of an answer of no other kind.

Each has one canonical text, which :func:`read_value` reads back: ``pink;red``, ``5..10``, ``..5`` (below 5), ``..=5``
(at most 5), ``20..`` (above 20), ``=20..`` (at least 20), ``~10`` (about 10).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

YES, NO = "yes", "no"


class Kind(StrEnum):
    """Type of the answer to a question."""

    YES_NO = "yes_no"
    FINDINGS = "findings"
    COUNT = "count"
    SIZE = "size"
    COLOUR = "colour"
    PLACE = "place"
    POLYP_TYPE = "polyp_type"
    PROCEDURE = "procedure"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Names:
    """A set of canonical names; never empty."""

    names: frozenset[str]

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("names must not be empty")

    def __str__(self) -> str:
        return ";".join(sorted(self.names))


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """An interval of numbers.

    Attributes:
        low: Lower end, at least 0.
        high: Upper end, at least ``low``; infinite if there is none.
        low_open: True if ``low`` itself is excluded.
        high_open: True if ``high`` itself is excluded.
        about: True if a single number is approximate.
    """

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False
    about: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high or math.isinf(self.low):
            raise ValueError(f"no interval from {self.low} to {self.high}")

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{'~' if self.about else ''}{self.low:g}"
        if math.isinf(self.high):
            return f"{'' if self.low_open else '='}{self.low:g}.."
        if self.low == 0 and not self.low_open:
            return f"..{'' if self.high_open else '='}{self.high:g}"
        return f"{self.low:g}..{self.high:g}"


@dataclass(frozen=True, slots=True)
class Ranges:
    """Intervals in ascending order, mostly one; never empty."""

    ranges: tuple[Range, ...]

    def __post_init__(self) -> None:
        if not self.ranges:
            raise ValueError("ranges must not be empty")

    def __str__(self) -> str:
        return ";".join(str(interval) for interval in self.ranges)


@dataclass(frozen=True, slots=True)
class Words:
    """Free text in lower case without articles and punctuation, words separated by single spaces."""

    text: str

    def __str__(self) -> str:
        return self.text


Value: TypeAlias = Names | Ranges | Words

_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = re.compile(
    rf"(?P<about>~)?(?P<only>{_NUMBER})|(?P<at_least>=)?(?P<low>{_NUMBER})?\.\.(?P<most>=)?(?P<high>{_NUMBER})?"
)
_ARTICLES = frozenset({"a", "an", "the"})


def names(*values: str) -> Names:
    """Return a set of names."""
    return Names(frozenset(values))


def ranges(*values: Range) -> Ranges:
    """Return the distinct intervals in order."""
    return Ranges(tuple(sorted(set(values))))


def words(text: str) -> Words:
    """Return free text without case, articles and punctuation."""
    content = [word for word in re.findall(r"[^\W_]+", text.lower()) if word not in _ARTICLES]
    return Words(" ".join(content))


def read_value(kind: Kind, text: str) -> Value:
    """Return the value of a canonical text.

    Raises:
        ValueError: The text is not a value of the kind.
    """
    return _READ.get(kind, _names)(text)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def _names(text: str) -> Names:
    return names(*_parts(text))


def _ranges(text: str) -> Ranges:
    return ranges(*(_range(part) for part in _parts(text)))


_READ: Mapping[Kind, Callable[[str], Value]] = {Kind.TEXT: words, Kind.COUNT: _ranges, Kind.SIZE: _ranges}
"""Kinds whose values are not names."""


def is_canonical(text: str) -> bool:
    """Return True if a text is an interval in the form of :class:`Ranges`: ``..5``, ``5..10``, ``~8``."""
    parts = _parts(text)
    return bool(parts) and all(_RANGE.fullmatch(part) and part.strip(".") for part in parts)


def _range(text: str) -> Range:
    match = _RANGE.fullmatch(text)
    if match is None or (match["only"] is None and match["low"] is None and match["high"] is None):
        raise ValueError(f"{text!r} is not an interval")
    if match["only"] is not None:
        number = float(match["only"])
        return Range(number, number, about=match["about"] is not None)
    if match["high"] is None:
        return Range(float(match["low"]), math.inf, low_open=match["at_least"] is None)
    if match["low"] is None:
        return Range(0.0, float(match["high"]), high_open=match["most"] is None)
    return Range(float(match["low"]), float(match["high"]))
