"""Sizes in millimetres, as intervals."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from medtest.vqa.answers.found import Found
from medtest.vqa.answers.scope import SENTENCE_END
from medtest.vqa.values import Range, ranges

MOST = 500.0
"""A larger number of millimetres is no polyp's size."""

MOST_SIZES = 100
"""Different sizes of one answer that are looked at."""

_UNIT = (
    r"(?:mms?|cms?|millimet(?:er|re)s?|centimet(?:er|re)s?|mil\u00edmetros?|cent\u00edmetros?|millim\u00e8tres?"
    r"|centim\u00e8tres?|zentimeter|\u6beb\u7c73|\u5398\u7c73)(?![^\W\d_])"
)
_N = r"(?<![\w.])\d{1,4}(?:[.,]\d{1,2})?"
_JOINED = r"\s*(?:-|to|and|bis|a|y|x|by|\u81f3)\s*"
_SIZE = re.compile(
    rf"(?P<first>{_N})\s*(?P<unit1>{_UNIT})?(?:(?P<join>{_JOINED})(?P<second>(?<!\w)\d{{1,4}}(?:[.,]\d{{1,2}})?)\s*(?P<unit2>{_UNIT})?)?(?P<after>\s*(?:\+"
    rf"|or (?:more|larger|greater|less|smaller)|and (?:above|larger)|o m\u00e1s|oder mehr))?"
)
_ABOVE = re.compile(
    r"(?:>|\b(?:(?:more|greater|larger|bigger|longer) than|over|above|exceed(?:s|ing)|mayor (?:de|que|a)"
    r"|m\u00e1s de|plus de|mehr als|gr\u00f6\u00dfer als|\u00fcber|maior (?:que|de)|sup\u00e9rieure? \u00e0"
    r"|\u5927\u4e8e))\s*\Z"
)
_AT_LEAST = re.compile(
    r"(?:\u2265|>=|\b(?:at least|minimum of|no less than|not less than|mindestens|al menos|au moins))\s*\Z"
)
_BELOW = re.compile(
    r"(?:<|\b(?:(?:less|smaller|fewer) than|under|below|menor (?:de|que|a)|menos de|moins de|weniger als"
    r"|kleiner als|unter|\u5c0f\u4e8e))\s*\Z"
)
_AT_MOST = re.compile(
    r"(?:\u2264|<=|\b(?:at most|up to|no more than|not more than|maximum of|no larger than|not exceeding"
    r"|h\u00f6chstens|hasta))\s*\Z"
)
_ABOUT = re.compile(
    r"(?:~|\u2248|\b(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|etwa|ungef\u00e4hr"
    r"|aproximadamente|unos|alrededor de|environ|cerca de|nearly|almost|close to))\s*(?:a\s+)?\Z"
)
_BETWEEN = re.compile(r"\b(?:between|from|entre|zwischen|de)\s*\Z")
_DIMINUTIVE = re.compile(r"\bdiminutive\b")
_PARIS = re.compile(r"\b0-i\w+|\bparis\b[^.,;\n]{0,12}")


def size(low: str) -> Found | None:
    """Return the sizes of a text in millimetres, or None.

    Centimetres are converted, "5 x 8 mm" is its longest side, numbers without a unit are millimetres when the text has
    no other words. Where one interval holds another ("less than 1 cm, about 6-8 mm") only the narrower is kept.
    "Diminutive" is at most 5 mm (ESGE's guideline on polypectomy, 2017); "small" and "large" are no sizes.
    """
    shown = _PARIS.sub(lambda found: " " * len(found[0]), low)
    found: list[tuple[Range, int, int]] = []
    bare = not re.search(
        r"[^\W\d_]", re.sub(r"\b(?:to|and|between|about|around|less|more|than|or|at|least|size)\b", "", shown)
    )
    for one in _SIZE.finditer(shown):
        unit = one["unit2"] or one["unit1"]
        if unit is None and not bare:
            continue
        found += _ranges_of(shown, one, unit)
    if not found:
        small = _DIMINUTIVE.search(low)
        return (ranges(Range(0, 5)), *small.span()) if small else None
    first = list({one[0]: one for one in reversed(found)}.values())[::-1][:MOST_SIZES]
    kept = [one for one in first if not any(_inside(other[0], one[0]) for other in first)]
    return ranges(*(one[0] for one in kept)), kept[0][1], kept[-1][2]


def _ranges_of(low: str, one: re.Match[str], unit: str | None) -> list[tuple[Range, int, int]]:
    first = _millimetres(one["first"], one["unit1"] or unit)
    start, end = one.span()
    begin, before = _words_before(low, start)
    if one["second"] is not None:
        second = _millimetres(one["second"], one["unit2"] or unit)
        if max(first, second) > MOST:
            return []
        if one["join"].strip() in ("x", "by"):
            longest = max(first, second)
            return [(Range(longest, longest), start, end)]
        if one["join"].strip() in ("and", "y") and not _BETWEEN.search(before):
            return [(Range(number, number), start, end) for number in (first, second)]
        return [(Range(min(first, second), max(first, second)), start, end)]
    if first > MOST:
        return []
    after = (one["after"] or "").strip()
    made = Range(first, first)
    if after in ("or less", "or smaller") or _AT_MOST.search(before):
        made = Range(0, first)
    elif after or _AT_LEAST.search(before):
        made = Range(first, math.inf)
    elif _BELOW.search(before):
        made = Range(0, first, high_open=first > 0)
    elif _ABOVE.search(before):
        made = Range(first, math.inf, low_open=True)
    elif _ABOUT.search(before):
        made = replace(made, about=True)
    return [(made, begin + len(before) - len(before.lstrip()), end)]


def _words_before(low: str, start: int) -> tuple[int, str]:
    """Return the words of the same sentence before a number, and where they begin: a few are enough."""
    begin = max(0, start - 28)
    ends = [found.end() for found in SENTENCE_END.finditer(low, begin, start)]
    begin = ends[-1] if ends else begin
    return begin, low[begin:start]


def _millimetres(number: str, unit: str | None) -> float:
    value = float(number.replace(",", "."))
    return round(value * 10, 6) if unit is not None and unit.startswith(("c", "z", "\u5398")) else value


def _inside(narrow: Range, wide: Range) -> bool:
    """Say whether an interval lies within another and is not the same."""
    return narrow != wide and wide.low <= narrow.low and narrow.high <= wide.high and wide.high > wide.low
