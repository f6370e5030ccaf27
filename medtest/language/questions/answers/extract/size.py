"""Sizes in millimetres, as intervals."""

from __future__ import annotations

import math
import re

from medtest.language.questions.answers.lexicon.texts import table, texts
from medtest.language.questions.answers.scope import SENTENCE_END
from medtest.language.questions.answers.values.readings import Found, without
from medtest.language.questions.values import Range, ranges

MOST = 500.0
"""Largest plausible size of a polyp in millimetres."""

MOST_OF_ONE = 3
"""Largest number of different sizes in an answer about one or a few polyps; more are a scale."""
MOST_SIZES = 100
"""Largest number of different sizes in an answer that are examined."""

_TEXTS = texts(__file__)
_UNIT = _TEXTS["unit"]
_SAID: dict[str, float] = {
    word: number for number, numerals in table(__file__, "numerals").items() for word in numerals
}
"""Number words, which count only before a unit."""
_SAID_ONE = "|".join(sorted((word.replace(" ", r"\s+") for word in _SAID), key=len, reverse=True))
_IN_WORDS = (
    rf"(?:(?<![^\W\d_])(?:{_SAID_ONE})(?=\s*-?\s*{_UNIT}|\s*(?:-|to|and|or|bis|a|y)\s*(?:{_SAID_ONE})\s*{_UNIT}))"
)
_N = rf"(?:(?<![a-z0-9_.])\d{{1,4}}(?:[.,]\d{{1,2}})?|{_IN_WORDS})"
_SECOND = rf"(?:(?<!\w)\d{{1,4}}(?:[.,]\d{{1,2}})?|{_IN_WORDS})"
_JOINED = r"\s*(?:-|~|to|till|until|and|or|bis|oder|a|\u00e0|y|o|et|ou|und|x|by|\u81f3|\u5230)\s*"
SIZE = re.compile(
    rf"(?P<first>{_N})(?:[\s-]*(?P<unit1>{_UNIT}))?"
    rf"(?:(?P<join>{_JOINED})(?P<second>{_SECOND})(?:[\s-]*(?P<unit2>{_UNIT}))?)?"
    r"(?P<after>\s*(?:(?:in (?:size|diameter|length) )?(?:\+"
    r"|or (?:more|larger|greater|bigger|above|over|less|smaller|below|under)|(?:and|&) (?:above|larger|more|below)"
    r"|o m\u00e1s|o menos|oder (?:mehr|weniger"
    r"|gr\u00f6\u00dfer|kleiner)|ou (?:plus|moins)|\u4ee5\u4e0a|\u4ee5\u4e0b)))?"
)
_ABOVE = re.compile(_TEXTS["above"])
_AT_LEAST = re.compile(_TEXTS["at_least"])
_BELOW = re.compile(_TEXTS["below"])
_AT_MOST = re.compile(_TEXTS["at_most"])
_ABOUT = re.compile(_TEXTS["about"])
_MARGIN = re.compile(r"(?:\+\s*/?\s*-|\u00b1)\s*\Z")
_NOT = re.compile(r"(?:\b(?:not|no|never|hardly|nicht|no es)|n't)(?: (?:any|much|be|\w+ly))*\s*\Z")
"""Negation before "larger than" and "smaller than", which reverses them and includes their end."""
_LEAST_BEHIND = re.compile(_TEXTS["least_behind"])
_MOST_BEHIND = re.compile(r"\A[\s,]*\(?(?:at (?:the )?(?:very )?most|(?:as )?(?:an? )?maximum|max|tops)\b")
_ARTICLE = re.compile(r"\b(?:the|an?|its)\s+\Z")
_OR_SO = re.compile(r"\A\s*(?:or so|or thereabouts|give or take|approximately|approx|roughly|\u5de6\u53f3)(?![a-z])")
_BETWEEN = re.compile(r"\b(?:between|from|entre|zwischen|de)\s*\Z")
_OR_LESS = re.compile(r"\b(?:less|smaller|below|under|menos|weniger|kleiner|moins)\Z|\u4ee5\u4e0b\Z")
_TOOLS = _TEXTS["tools"]
_TOOL = re.compile(rf"\b(?:{_TOOLS}|lumen|field of view|reference)\b")
_TOOL_BEHIND = re.compile(rf"\A[\s-]*(?:wide |open |long |working |biopsy |polypectomy |metal |injection )*{_TOOLS}\b")
_GROWTH = re.compile(r"\b(?:polyps?|lesion|adenoma|growth|it|its|size|diameter|p\u00f3lipo|polype)\b")
_SUBCENTIMETRE = re.compile(r"\bsub[\s-]?centimet(?:re|er|ric)\b")
_DIMINUTIVE = re.compile(r"\bdiminutive\b")
_PARIS = re.compile(r"\b0-i\w+|\bparis\b[^.,;\n]{0,12}")


def size(low: str) -> Found | None:
    """Return the sizes in a text in millimetres, or None.

    Centimetres are converted, "5 x 8 mm" is its longest side, numbers without a unit are millimetres if the text has no
    other words. If one interval contains another ("less than 1 cm, about 6-8 mm"), only the narrower is returned.
    "Diminutive" is at most 5 mm (ESGE's guideline on polypectomy, 2017); "small" and "large" are not sizes.
    """
    masked = without(_PARIS, low)
    sizes: list[tuple[Range, int, int]] = []
    of_tools: list[tuple[Range, int, int]] = []
    bare = not re.search(
        r"[^\W\d_]", re.sub(r"\b(?:to|and|between|about|around|less|more|than|or|at|least|size)\b", "", masked)
    )
    for match in SIZE.finditer(masked):
        unit = match["unit2"] or match["unit1"]
        if unit is None and not bare:
            continue
        intervals = _ranges_of(masked, match, unit)
        (of_tools if of_a_tool(masked, *match.span()) else sizes).extend(intervals)
    sizes = _together(masked, sizes or of_tools)
    if not sizes:
        below = _SUBCENTIMETRE.search(low)
        if below is not None:
            return ranges(Range(0, 10, high_open=True)), *below.span()
        small = _DIMINUTIVE.search(low)
        return (ranges(Range(0, 5)), *small.span()) if small else None
    if len({entry[0] for entry in sizes}) > MOST_OF_ONE:
        return None  # a list of choices
    first = list({entry[0]: entry for entry in reversed(sizes)}.values())[::-1][:MOST_SIZES]
    narrowest = [entry for entry in first if not any(_inside(candidate[0], entry[0]) for candidate in first)]
    return ranges(*(entry[0] for entry in narrowest)), narrowest[0][1], narrowest[-1][2]


def of_a_tool(low: str, start: int, end: int) -> bool:
    """Return True if a number is the size of an instrument next to the polyp."""
    if any(bound.search(_ARTICLE.sub("", low[max(0, start - 28) : start])) for bound in (_ABOVE, _BELOW)):
        return False  # the polyp is compared with it
    if _TOOL_BEHIND.match(low[end : end + 40]):
        return True
    _, preceding = _words_before(low, start, reach=80)
    preceding = preceding.rstrip(" (") if preceding.endswith("(") else preceding
    clause = re.split(r"[,;(:]|\b(?:that|which|so|hence|but|and)\b", preceding)[-1]
    tool = _TOOL.search(clause)
    return tool is not None and _GROWTH.search(clause) is None


def _ranges_of(low: str, match: re.Match[str], unit: str | None) -> list[tuple[Range, int, int]]:
    if _MARGIN.search(low, 0, match.start()):
        return []
    first = _millimetres(match["first"], match["unit1"] or unit)
    start, end = match.span()
    begin, preceding = _words_before(low, start)
    if match["second"] is not None:
        second = _millimetres(match["second"], match["unit2"] or unit)
        if max(first, second) > MOST:
            return []
        if match["join"].strip() in ("x", "by"):
            longest = max(first, second)
            return [(Range(longest, longest), start, end)]
        if match["join"].strip() in ("and", "y", "et", "und") and not _BETWEEN.search(preceding):
            return [(Range(number, number), start, end) for number in (first, second)]
        return [(Range(min(first, second), max(first, second)), start, end)]
    if first > MOST:
        return []
    interval = _bound(first, (match["after"] or "").strip(), _ARTICLE.sub("", preceding), low[end : end + 28])
    return [(interval, begin + len(preceding) - len(preceding.lstrip()), end)]


def _bound(number: float, suffix: str, preceding: str, behind: str) -> Range:
    """Return the interval of a number, given the words around it."""
    below, above = _BELOW.search(preceding), _ABOVE.search(preceding)
    turned = (bound := below or above) is not None and _NOT.search(preceding, 0, bound.start()) is not None
    if _OR_LESS.search(suffix) or _AT_MOST.search(preceding) or _MOST_BEHIND.match(behind) or (turned and above):
        return Range(0, number)
    if suffix or _AT_LEAST.search(preceding) or _LEAST_BEHIND.match(behind) or (turned and below):
        return Range(number, math.inf)
    if below:
        return Range(0, number, high_open=number > 0)
    if above:
        return Range(number, math.inf, low_open=True)
    return Range(number, number, about=bool(_ABOUT.search(preceding) or _OR_SO.match(behind[:16])))


def _together(low: str, sizes: list[tuple[Range, int, int]]) -> list[tuple[Range, int, int]]:
    """Merge a lower and an upper bound in one sentence: "larger than 1 cm but smaller than 2"."""
    merged: list[tuple[Range, int, int]] = []
    for interval, start, end in sizes:
        previous = merged[-1] if merged else None
        if previous is not None and not SENTENCE_END.search(low, previous[2], start):
            low_end, high_end = max(interval.low, previous[0].low), min(interval.high, previous[0].high)
            bounds = sorted((math.isinf(size.high), size.low > 0) for size in (interval, previous[0]))
            if bounds == [(False, False), (True, True)] and low_end < high_end:
                merged[-1] = Range(low_end, high_end), previous[1], end
                continue
        merged.append((interval, start, end))
    return merged


def _words_before(low: str, start: int, reach: int = 28) -> tuple[int, str]:
    """Return the start and the last words of the same sentence before a number."""
    begin = max(0, start - reach)
    ends = [match.end() for match in SENTENCE_END.finditer(low, begin, start)]
    begin = ends[-1] if ends else begin
    return begin, low[begin:start]


def _millimetres(number: str, unit: str | None) -> float:
    text = " ".join(number.split())
    value = _SAID[text] if text in _SAID else float(number.replace(",", "."))
    return round(value * 10, 6) if unit is not None and unit.startswith(("c", "z", "\u5398")) else value


def _inside(narrow: Range, wide: Range) -> bool:
    """Return True if an interval is strictly within another."""
    return narrow != wide and wide.low <= narrow.low and narrow.high <= wide.high and wide.high > wide.low
