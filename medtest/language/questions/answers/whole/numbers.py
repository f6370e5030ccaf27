"""Numbers in a text that are not part of the reading: of other objects, odds, ends of intervals."""

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
"""Words that make a number the end of an interval or a part of another number."""
_BOUND_BEHIND = re.compile(r"[^.;,\n]{0,30}\bat (?:the )?(?:least|most)\b")
"""Words after a count that make it the end of an interval."""
_DISTANCE = re.compile(_TEXTS["distance"])
"""Words that mark a length as not of the polyp."""
_NO_OTHER = re.compile(r"\b(?:other|further|additional|more|second|another|else|besides|elsewhere|only)\b")
_BEHIND_A_COUNT = re.compile(_TEXTS["behind_a_count"])
"""Words that may follow a count of the subject, other than its noun."""
_THIS_ONE = re.compile(r"\b(?:this|that|which|each|any|no) one\Z")
_POINT = re.compile(r"(?m)^\W*\d{1,2}[.)]\s")
"""Number of a list point."""
_ORDINAL = re.compile(r"\b(?:second|third|fourth|2nd|3rd)\b")
_COUNTED = re.compile(
    r"\s+(?:(?!and\b|or\b)[^\W\d]+\s+){0,3}?"
    rf"(?:{'|'.join((*(noun for item, noun in THINGS.items() if item is not None), NOT_POLYPS))})\b"
)
"""Nouns after a number that counts something named."""


def bare_number(passage: Passage) -> str:
    """Return a number in digits that is not a measure, an hour or a date and counts nothing named, or ""."""
    masked = without(OTHER_NUMBERS, without(QUOTED, passage.part))
    masked = without(ODDS, without(_POINT, masked))
    for match in _NUMBER.finditer(masked):
        if match[0][0].isdigit() and not _counts(masked, match.end()):
            return f"number {match[0]}"
    return ""


def beside_sizes(passage: Passage, value: Ranges) -> str:
    """Return an objection to sizes: another length or number, or a bound that was not used."""
    if len(value.ranges) > 1 and not sizes_listed(passage.said):
        return "several sizes"
    if (distance := _DISTANCE.search(passage.part)) is not None:
        return f"distance {distance[0]}"
    if _exact(value) and (compared := _COMPARED.search(passage.part)) is not None:
        return f"compared {compared[0]}"
    low, ends = passage.low, _ends(value)
    tools = [match.span() for match in SIZE.finditer(low) if of_a_tool(low, *match.span())]
    masked = OTHER_NUMBERS.sub(lambda match: match[0] if SIZE.search(match[0]) else " " * len(match[0]), low)
    for match in _NUMBER.finditer(masked):
        if passage.holds(match.start()) or any(first <= match.start() < last for first, last in tools):
            continue
        if not _is(match[0], ends) and not (_counts(masked, match.end()) and match[0] not in ("half", "quarter")):
            return f"number {match[0]}"
    return ""


def beside_a_count(passage: Passage, value: Ranges, item: int | None) -> str:
    """Return an objection to a count: a denial of its noun, a bound, another number.

    Args:
        passage: Text of the reading.
        value: The count.
        item: Official id of the question, which determines the counted noun.
    """
    low, ends = passage.low, _ends(value)
    if _exact(value) and (bound := _BOUND_BEHIND.match(low, passage.end)) is not None:
        return f"compared {bound[0]}"
    if min(ends) > 0 and item in THINGS and (denied_noun := _denied_noun(low, THINGS[item])):
        return f"denied {denied_noun}"
    if max(ends) == 1 and (ordinal := _ORDINAL.search(low)) is not None and not negated(low, *ordinal.span()):
        return f"number {ordinal[0]}"
    if passage.said == "one" and _THIS_ONE.search(low[: passage.end]):
        return "this one"
    masked = _POINT.sub(
        lambda match: match[0] if match.start() <= passage.start < match.end() else " " * len(match[0]),
        without(OTHER_NUMBERS, low),
    )
    if (odds := ODDS.findall(low)) and len(odds) > 1:
        return f"odds {odds[0]}"
    masked = without(ODDS, masked)
    other_numbers = [
        match for match in _NUMBER.finditer(masked) if not passage.holds(match.start()) and not _is(match[0], ends)
    ]
    if _sum(other_numbers) == max(ends):
        return ""
    if other_count := _other_count(masked, other_numbers, THINGS.get(item, "$^")):
        return f"number {other_count}"
    counts = not _NUMBER.fullmatch(passage.said) or _counts(masked, passage.end)
    return "" if counts or _BEHIND_A_COUNT.match(masked, passage.end) else "counts something else"


def _denied_noun(low: str, noun: str) -> str:
    """Return a noun that is denied, or "" if none is or the text only denies further ones."""
    for match in re.finditer(rf"\b(?:{noun})\b", low):
        if negated(low, *match.span()) and not _NO_OTHER.search(low[max(0, match.start() - 25) : match.end() + 25]):
            return match[0]
    return ""


def _sum(numbers: list[re.Match[str]]) -> float:
    numerals = (str(NUMERALS.get(match[0], match[0])) for match in numbers)
    return sum(float(text.replace(",", ".")) for text in numerals if re.fullmatch(r"[\d.,]+", text))


def _other_count(masked: str, numbers: list[re.Match[str]], noun: str) -> str:
    """Return the first number that may count the subject, or ""."""
    for match in numbers:
        counts_other = _counts(masked, match.end()) and not re.search(noun, masked[match.end() : match.end() + 40])
        if match[0] != "one" and not counts_other:
            return match[0]
    return ""


def _exact(value: Ranges) -> bool:
    return all(interval.low == interval.high for interval in value.ranges)


def _ends(value: Ranges) -> set[float]:
    return {number for interval in value.ranges for number in (interval.low, interval.high)}


def _is(text: str, numbers: set[float]) -> bool:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return float(NUMERALS.get(text, -1)) in numbers
    return number in numbers or number * 10 in numbers


def _counts(low: str, end: int) -> bool:
    """Return True if the number before a position counts something named: "two polyps", "three clips"."""
    return _COUNTED.match(low, end) is not None
