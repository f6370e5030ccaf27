"""Counts: digits, words and ranges; never the digits of sizes, Paris classes or percentages."""

from __future__ import annotations

import itertools
import math
import re

from medtest.language.questions.answers.extract.nouns import (
    FINDINGS,
    INSTRUMENTS,
    NOT_POLYPS,
    NUMERALS,
    OTHER_NUMBERS,
    POLYPS,
    THINGS,
)
from medtest.language.questions.answers.lexicon import words as lexicon
from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.plain import LISTED
from medtest.language.questions.answers.scope import negated
from medtest.language.questions.answers.states import leading, nothing
from medtest.language.questions.answers.values.readings import Found, blanked, without
from medtest.language.questions.values import Range, Ranges, ranges

MOST = 1000
"""A larger number counts nothing in an image."""

_LATIN = "|".join(sorted((word for word in NUMERALS if word[0] < "\u2e80"), key=len, reverse=True))
_CHINESE = "".join(word for word in NUMERALS if word[0] > "\u2e80")
_COUNTER = r"\s*[\u4e2a\u679a\u5904]"
_LATIN_WORD = rf"(?<![^\W\d_])(?:{_LATIN})(?![^\W\d_])"
_N = (
    rf"(?:(?<![\w.,-])\d{{1,4}}(?![\d%]|[.,]\d|\w)|{_LATIN_WORD}"
    rf"|(?<!\w)\d{{1,4}}(?={_COUNTER})|[{_CHINESE}](?={_COUNTER}))"
)
_TOP = rf"(?:(?<![\w.,])\d{{1,4}}(?![\d%]|[.,]\d|\w)|{_LATIN_WORD})"
"""A number behind a hyphen or a word: the upper end of a range."""

_NUMBER = re.compile(_N)
_RANGE = re.compile(
    rf"(?P<low>{_N})\s*(?:-|to|or|bis|oder|ou|o|\u5230|\u6216|,?\s*(?:or |and |vielleicht |quiz\u00e1s? "
    rf"|peut-\u00eatre )?"
    rf"(?:possibly|perhaps|maybe|potentially|m\u00f6glicherweise|posiblemente)(?: even)?)\s*(?P<high>{_TOP})"
    rf"|\b(?:between|entre|zwischen)\s+(?P<low_2>{_N})\s+(?:and|y|et|und)\s+(?P<high_2>{_TOP})"
)
_AT_LEAST = re.compile(
    rf"\b(?:at least|minimum of|no (?:fewer|less) than|mindestens|al menos|au moins)\s+(?P<n>{_N})"
    rf"|(?P<plus>(?<![\w.,])\d{{1,4}})\s*\+|(?P<more>{_N})\s+or more"
)
_MORE = re.compile(
    rf"\b(?:more than|over|greater than|m\u00e1s de|mehr als|plus de)\s+(?P<n>{_N})|(?<![\w<>])>\s*(?P<gt>\d{{1,4}})\b"
)
_AT_MOST = re.compile(rf"\b(?:at most|up to|no more than|maximum of|not more than)\s+(?P<n>{_N})")
_TEXTS = texts(__file__)
_SEVERAL = re.compile(_TEXTS["several"])
_OTHER_THINGS: dict[int | None, str] = {
    POLYPS: NOT_POLYPS,
    INSTRUMENTS: _TEXTS["other_things_instruments"],
    FINDINGS: _TEXTS["other_things_findings"],
}
"""What is counted beside that which was asked about: "no polyps, but two instruments"."""
_SECTION: dict[int | None, str] = {FINDINGS: "abnormality", INSTRUMENTS: "instrument"}
_SEES_NONE = re.compile(_TEXTS["sees_none"])
_LINE = re.compile(rf"^[ ]*(?:(?P<n>\d{{1,2}})[.)]|{LISTED}) +(?P<what>[^\W\d][^\n]*)", re.MULTILINE)
_INLINE = re.compile(r"(?<![^\s,;:])(?P<open>\(?)(?P<n>\d{1,2})[.)](?= +[^\W\d])")
_CONCLUDED = re.compile(
    rf"\b(?:so|hence|therefore|thus|that makes|making|which makes|adds up to|comes to|i (?:would |'d )?(?:count"
    rf"|go with|settle on))\b"
    rf"(?: (?:in total|overall|altogether|i|we|it|that|is|are|there|count|would|say|see|the|answer|total|of|a"
    rf"|just|only))*"
    rf"[\s,:]*(?:(?P<n>{_N})|(?P<none>none|nothing)\b)(?!\s*(?:or|to|-|\w+ (?:of|on|in)\b))"
)
"""What an answer comes to after it has thought aloud."""
_TIMES = re.compile(r"(?<!\w)(\d{1,2}) ?x(?= +[^\W\d])|\bx ?(\d{1,2})(?!\w| ?x|[.,]\d| ?(?:mm|cm))")
"""A number with a cross: "2x diminutive polyps", "polyps x3"."""
_ANOTHER = _TEXTS["another"]
"""One more of what was counted before; ``THING`` stands for the noun."""
_PART_OF_IT = re.compile(r"\b(?:one|an?|the (?:first|other))\b")
_PAIR = re.compile(r"\bpairs? of (?=(?:\w+ )?(?:forceps|scissors|tweezers|pliers|jaws)\b)")
"""What is one thing though it is called a pair."""
_IN_ALL = re.compile(
    rf"(?P<n>{_N})\s+(?:\w+ )?(?:in total|altogether|in all|all told|overall|insgesamt|en total|au total)\b"
)
_NO_TOTAL = re.compile(r"\b(?:count|number|total|sum|result)\b[^.;\n]{0,40}?\b(?:is|of|=|:)\s*")


def count(low: str, item: int | None) -> Found | None:
    """Return the count of a text as an interval of whole numbers, or None.

    Args:
        low: The plain text in lower case.
        item: Official id of the question; it tells which noun is counted.
    """
    low = _TIMES.sub(lambda found: (found[1] or found[2]).rjust(len(found[0])), low)
    shown = without(_PAIR, low)
    shown = without(OTHER_NUMBERS, shown)
    thing = THINGS.get(item, THINGS[None])
    if item in _OTHER_THINGS:
        shown = _without_other_things(shown, thing, _OTHER_THINGS[item])
    if (whole := _IN_ALL.search(shown)) is not None:
        return ranges(Range(_number(whole["n"]), _number(whole["n"]))), *whole.span("n")
    total = _NO_TOTAL.search(shown)
    if (
        total is not None
        and (found := _bounded(shown, total.end())) is not None
        and not shown[total.end() : found[1]].strip()
    ):
        return found
    if (others := _with_others(low, item, thing)) is not None:
        return others
    shown = _in_lines(shown)
    if (listed := _listed(shown, thing, _SECTION.get(item))) is not None:
        _, begin, end = listed
        first = _NUMBER.search(shown)
        if first is None or (first.start() >= begin and first.end() <= end):
            return listed
    if len(_LINE.findall(shown)) > 1:
        shown = _LINE.sub(lambda found: " " * (found.start("what") - found.start()) + found["what"], shown)
    added = _sum(shown, thing) if item in (FINDINGS, INSTRUMENTS) else None
    if (concluded := _CONCLUDED.search(shown)) is not None:
        number = 0.0 if concluded["none"] else _number(concluded["n"])
        return ranges(Range(number, number)), *concluded.span()
    found = _bounded(shown, 0)
    if found is not None and added is None and _grows(shown, found):
        return None
    if found is not None:
        return added if added is not None and not _headed(shown, found) else found
    if (several := _SEVERAL.search(shown)) is not None and not negated(shown, *several.span()):
        return ranges(Range(2, math.inf)), *several.span()
    if added is not None:
        return added
    return _without_numbers(low, thing, _SECTION.get(item))


def _without_other_things(low: str, thing: str, others: str) -> str:
    """Return a text without the numbers of what was not asked about, where it names both."""
    number = rf"(?:{_N}|\ban?\b)\s+(?:(?!{thing}\b|and\b|or\b|of\b)[^\W\d]+\s+){{0,2}}?{others}\b"
    named = re.search(rf"\b{thing}\b", re.sub(number, "", low))
    if named is None:
        return low
    return without(re.compile(number), low)


def _with_others(low: str, item: int | None, thing: str) -> Found | None:
    """Return what is counted before "another one" with one more for each; None of "two: one here, another there"."""
    pattern = _ANOTHER.replace("THING", thing)
    others = [one for one in re.finditer(pattern, low) if not negated(low, *one.span())]
    found = count(low[: others[0].start()], item) if others else None
    if found is None or not isinstance(found[0], Ranges):
        return None
    (first, *more), start, end = found[0].ranges, found[1], found[2]
    if more or first.low != first.high or first.low < 1:
        return None
    if first.low > 1 and _PART_OF_IT.search(low, end, others[0].start()):
        return None
    return ranges(Range(first.low + len(others), first.low + len(others))), start, others[-1].end()


def _in_lines(low: str) -> str:
    """Return a text with the points of a list that stands on one line, "1. polyp 2. ulcer", on lines of their own."""
    points = list(_INLINE.finditer(low))
    if len(points) < 2 or [int(one["n"]) for one in points] != list(range(1, len(points) + 1)):
        return low
    for one in points:
        if one.start():
            low = f"{low[: one.start() - 1]}\n{low[one.start() :]}"
        low = blanked(low, one.start("open"), one.end("open"))
    return low


def _listed(low: str, thing: str, section: str | None) -> Found | None:
    """Return how many things a list has, of points or numbered from 1 on, two at least, each line naming one."""
    lines = list(_LINE.finditer(low))
    numbers = [int(one["n"]) for one in lines if one["n"] is not None]
    if len(lines) < 2 or numbers not in ([], list(range(1, len(lines) + 1))):
        return None
    named = re.compile(rf"(?:(?!no\b|not\b|there\b)[^\s\d.:]+\s+){{0,3}}?{thing}\b")
    for one in lines:
        what = re.split(r"[,:(.]", one["what"])[0]
        if not named.match(one["what"]) and not (section is not None and lexicon.affirmed(section, what)):
            return None
    number = float(len(lines))
    return ranges(Range(number, number)), lines[0].start(), lines[-1].end()


def _bounded(low: str, start: int) -> Found | None:
    """Return the first number from a place on, with the words that make it a bound or a range."""
    first = _NUMBER.search(low, start)
    tries: list[tuple[int, int, Range]] = []
    if (one := _RANGE.search(low, start)) is not None:
        low_end, high_end = sorted(_number(text) for text in one.groups() if text is not None)
        if low_end < high_end:
            tries.append((one.start(), one.end(), Range(low_end, high_end)))
    for pattern, make in ((_AT_LEAST, _from), (_MORE, _above), (_AT_MOST, _until)):
        if (one := pattern.search(low, start)) is not None:
            tries.append(
                (one.start(), one.end(), make(_number(next(text for text in one.groups() if text is not None))))
            )
    if first is not None:
        tries.append((first.start(), first.end(), Range(_number(first[0]), _number(first[0]))))
    if not tries:
        return None
    begin, end, found = min(tries, key=lambda one: (one[0], -one[1]))
    return (ranges(found), begin, end) if found.low <= MOST else None


def _grows(low: str, found: Found) -> bool:
    """Say whether a larger number follows a first one: "one here, ... two"; which of them is meant is not known."""
    first = found[0].ranges[0] if isinstance(found[0], Ranges) else None
    if first is None or first.low != first.high or first.low < 1:
        return False
    return any(_number(one[0]) > first.high for one in _NUMBER.finditer(low, found[2]))


def _from(number: float) -> Range:
    return Range(number, math.inf)


def _above(number: float) -> Range:
    return Range(number + 1, math.inf)


def _until(number: float) -> Range:
    return Range(0, number)


def _number(text: str) -> float:
    return float(NUMERALS[text]) if text in NUMERALS else float(text)


def _headed(low: str, found: Found) -> bool:
    """Say whether a number counts the findings or instruments as such, so that what follows lists them again."""
    return (
        re.match(r"\s*(?:\w+\s+){0,2}?(?:findings?|abnormalit(?:y|ies)|instruments?|lesions?)\b", low[found[2] :])
        is not None
    )


def _sum(low: str, thing: str) -> Found | None:
    """Return the sum of a list such as "one polyp and two ulcers"."""
    part = rf"(?P<n>{_N}|\ban?\b)\s+(?:(?!and\b|or\b)[^\W\d]+\s+){{0,2}}?{thing}\b"
    parts = [one for one in re.finditer(part, low) if not negated(low, *one.span())]
    joined = all(
        re.fullmatch(r"\s*(?:,\s*)?(?:and|plus|\+|,)?\s*", low[first.end() : second.start()])
        for first, second in zip(parts, parts[1:], strict=False)
    )
    if len(parts) < 2 or not joined:
        return None
    number = sum(1.0 if one["n"] in ("a", "an") else _number(one["n"]) for one in parts)
    return ranges(Range(number, number)), parts[0].start(), parts[-1].end()


def _none_seen(low: str) -> tuple[int, int] | None:
    found = _SEES_NONE.search(low)
    return found.span() if found else None


def _named_alone(low: str, thing: str, section: str | None) -> Found | None:
    """Return how many things are named without a number: "snare and forceps" are two, "polyp in the corner" is one."""
    if section is not None:
        found = [one for one in lexicon.affirmed(section, low) if _is_one(low[one[1] : one[2]])]
        listed = len(found) > 1 and all(
            re.fullmatch(
                r"\W*(?:(?:,|and|&|\+|plus|und|y|et)\s*)?(?:(?:an?"
                r"|the)\s+)?(?:\w+\s+){0,2}?",
                low[first[2] : second[1]],
            )
            for first, second in itertools.pairwise(found)
        )
        if listed and len({name for name, _, _ in found}) == len(found):
            return ranges(Range(len(found), len(found))), found[0][1], found[-1][2]
        if len(found) == 1 and not low[: found[0][1]].strip(" .:-\u25aa"):
            return ranges(Range(1, 1)), *found[0][1:]
    single = (
        re.match(rf"\W*(?:(?!no\b|not\b|without\b)[^\W\d]+\s+){{0,2}}?(?P<thing>{thing})\b", low)
        if thing != r"\w+"
        else None
    )
    if single is None or not _is_one(single["thing"]) or negated(low, *single.span("thing")):
        return None
    return ranges(Range(1, 1)), *single.span("thing")


def _is_one(word: str) -> bool:
    """Say whether a noun is a singular, as far as its ending tells."""
    return word.endswith(("forceps", "ss", "itis", "is", "us")) or not word.endswith(("s", "polypen", "instrumente"))


def _without_numbers(low: str, thing: str, section: str | None) -> Found | None:
    """Return 0 for what is denied, and 1 for "a polyp"."""
    none = nothing(low) or _none_seen(low)
    lead = leading(low)
    if none is not None or (lead is not None and not lead[0]):
        place = none or (lead[1] if lead else (0, 0))
        return ranges(Range(0, 0)), *place
    if (alone := _named_alone(low, thing, section)) is not None:
        return alone
    denied: Found | None = None
    for one in (
        re.finditer(
            rf"(?P<article>\b(?:an?|the|(?:just|only) (?:the|that))\s+(?:\w+\s+){{0,4}}?)?(?P<thing>{thing})\b", low
        )
        if thing != r"\w+"
        else ()
    ):
        if negated(low, one.start("thing"), one.end()) or negated(low, one.start(), one.end()):
            denied = denied or (ranges(Range(0, 0)), *one.span("thing"))
        elif one["article"] and not one["article"].startswith("the"):
            return ranges(Range(1, 1)), *one.span()
    return denied
