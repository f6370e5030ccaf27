"""Numbers of a text that are no part of what was read: of other things, odds, ends of intervals."""

from __future__ import annotations

import re

from medtest.language.questions.answers.extract.nouns import NOT_POLYPS, NUMERALS, OTHER_NUMBERS, THINGS
from medtest.language.questions.answers.extract.size import SIZE, of_a_tool
from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.scope import negated
from medtest.language.questions.answers.values.readings import without
from medtest.language.questions.answers.whole.lists import sizes_listed
from medtest.language.questions.answers.whole.passage import Passage
from medtest.language.questions.answers.whole.words import QUOTED
from medtest.language.questions.values import Ranges

_TEXTS = texts(__file__)
_NUMBER = re.compile(_TEXTS["number"])
ODDS = re.compile(r"\d\s*%|(?<![\w.,])[01]?\.\d+(?!\s*(?:mm|cm))")
_COMPARED = re.compile(_TEXTS["compared"])
"""What makes a number the end of an interval or a part of another number."""
_BOUND_BEHIND = re.compile(r"[^.;,\n]{0,30}\bat (?:the )?(?:least|most)\b")
"""What makes a count the end of an interval behind it."""
_DISTANCE = re.compile(_TEXTS["distance"])
"""What says that a length is none of the polyp."""
_NO_OTHER = re.compile(r"\b(?:other|further|additional|more|second|another|else|besides|elsewhere|only)\b")
_BEHIND_A_COUNT = re.compile(_TEXTS["behind_a_count"])
"""What may follow a number that counts what was asked about, besides its noun."""
_THIS_ONE = re.compile(r"\b(?:this|that|which|each|any|no) one\Z")
_POINT = re.compile(r"(?m)^\W*\d{1,2}[.)]\s")
"""The number of a point of a list."""
_ORDINAL = re.compile(r"\b(?:second|third|fourth|2nd|3rd)\b")
_COUNTED = re.compile(
    r"\s+(?:(?!and\b|or\b)[^\W\d]+\s+){0,3}?"
    rf"(?:{'|'.join((*(one for item, one in THINGS.items() if item is not None), NOT_POLYPS))})\b"
)
"""What stands behind a number that counts something that is named."""


def bare_number(passage: Passage) -> str:
    """Return a number in digits that is none of a measure, an hour or a date and counts nothing that is named."""
    shown = without(OTHER_NUMBERS, without(QUOTED, passage.part))
    shown = without(ODDS, without(_POINT, shown))
    for one in _NUMBER.finditer(shown):
        if one[0][0].isdigit() and not _counts(shown, one.end()):
            return f"number {one[0]}"
    return ""


def beside_sizes(passage: Passage, value: Ranges) -> str:
    """Return what speaks against sizes that were read: another length or number, an end that made no interval."""
    if len(value.ranges) > 1 and not sizes_listed(passage.said):
        return "several sizes"
    if (distance := _DISTANCE.search(passage.part)) is not None:
        return f"distance {distance[0]}"
    if _exact(value) and (compared := _COMPARED.search(passage.part)) is not None:
        return f"compared {compared[0]}"
    low, own = passage.low, _ends(value)
    tools = [one.span() for one in SIZE.finditer(low) if of_a_tool(low, *one.span())]
    shown = OTHER_NUMBERS.sub(lambda one: one[0] if SIZE.search(one[0]) else " " * len(one[0]), low)
    for one in _NUMBER.finditer(shown):
        if passage.holds(one.start()) or any(first <= one.start() < last for first, last in tools):
            continue
        if not _is(one[0], own) and not (_counts(shown, one.end()) and one[0] not in ("half", "quarter")):
            return f"number {one[0]}"
    return ""


def beside_a_count(passage: Passage, value: Ranges, item: int | None) -> str:
    """Return what speaks against a count that was read: a denial of its noun, an end, another number.

    Args:
        passage: What it was read from.
        value: The count.
        item: Official id of the question; it tells which noun is counted.
    """
    low, own = passage.low, _ends(value)
    if _exact(value) and (bound := _BOUND_BEHIND.match(low, passage.end)) is not None:
        return f"compared {bound[0]}"
    if min(own) > 0 and item in THINGS and (thing := _denied_noun(low, THINGS[item])):
        return f"denied {thing}"
    if max(own) == 1 and (ordinal := _ORDINAL.search(low)) is not None and not negated(low, *ordinal.span()):
        return f"number {ordinal[0]}"
    if passage.said == "one" and _THIS_ONE.search(low[: passage.end]):
        return "this one"
    shown = _POINT.sub(
        lambda one: one[0] if one.start() <= passage.start < one.end() else " " * len(one[0]),
        without(OTHER_NUMBERS, low),
    )
    if (odds := ODDS.findall(low)) and len(odds) > 1:
        return f"odds {odds[0]}"
    shown = without(ODDS, shown)
    others = [one for one in _NUMBER.finditer(shown) if not passage.holds(one.start()) and not _is(one[0], own)]
    if _sum(others) == max(own):
        return ""
    if other := _other_count(shown, others, THINGS.get(item, "$^")):
        return f"number {other}"
    counts = not _NUMBER.fullmatch(passage.said) or _counts(shown, passage.end)
    return "" if counts or _BEHIND_A_COUNT.match(shown, passage.end) else "counts something else"


def _denied_noun(low: str, thing: str) -> str:
    """Return a noun that is denied, "" where none is or where the text denies that there are more."""
    for one in re.finditer(rf"\b(?:{thing})\b", low):
        if negated(low, *one.span()) and not _NO_OTHER.search(low[max(0, one.start() - 25) : one.end() + 25]):
            return one[0]
    return ""


def _sum(numbers: list[re.Match[str]]) -> float:
    said = (str(NUMERALS.get(one[0], one[0])) for one in numbers)
    return sum(float(one.replace(",", ".")) for one in said if re.fullmatch(r"[\d.,]+", one))


def _other_count(shown: str, numbers: list[re.Match[str]], thing: str) -> str:
    """Return the first number that may count what was asked about, "" where each counts something else."""
    for one in numbers:
        named = _counts(shown, one.end()) and not re.search(thing, shown[one.end() : one.end() + 40])
        if one[0] != "one" and not named:
            return one[0]
    return ""


def _exact(value: Ranges) -> bool:
    return all(one.low == one.high for one in value.ranges)


def _ends(value: Ranges) -> set[float]:
    return {number for one in value.ranges for number in (one.low, one.high)}


def _is(said: str, numbers: set[float]) -> bool:
    try:
        number = float(said.replace(",", "."))
    except ValueError:
        return float(NUMERALS.get(said, -1)) in numbers
    return number in numbers or number * 10 in numbers


def _counts(low: str, end: int) -> bool:
    """Say whether what stands before a place counts something that is named: "two polyps", "three clips"."""
    return _COUNTED.match(low, end) is not None
