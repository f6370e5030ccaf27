"""Counts: digits, words and ranges, without the digits of sizes, Paris classes or percentages."""

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
"""Largest plausible count in an image."""

_LATIN = "|".join(sorted((word for word in NUMERALS if word[0] < "\u2e80"), key=len, reverse=True))
_CHINESE = "".join(word for word in NUMERALS if word[0] > "\u2e80")
_COUNTER = r"\s*[\u4e2a\u679a\u5904]"
_LATIN_WORD = rf"(?<![^\W\d_])(?:{_LATIN})(?![^\W\d_])"
_N = (
    rf"(?:(?<![\w.,-])\d{{1,4}}(?![\d%]|[.,]\d|\w)|{_LATIN_WORD}"
    rf"|(?<!\w)\d{{1,4}}(?={_COUNTER})|[{_CHINESE}](?={_COUNTER}))"
)
_TOP = rf"(?:(?<![\w.,])\d{{1,4}}(?![\d%]|[.,]\d|\w)|{_LATIN_WORD})"
"""Number after a hyphen or a word: the upper end of a range."""

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
"""Other counted objects: "no polyps, but two instruments"."""
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
"""Conclusion of an answer after reasoning."""
_TIMES = re.compile(r"(?<!\w)(\d{1,2}) ?x(?= +[^\W\d])|\bx ?(\d{1,2})(?!\w| ?x|[.,]\d| ?(?:mm|cm))")
"""Number with a cross: "2x diminutive polyps", "polyps x3"."""
_ANOTHER = _TEXTS["another"]
"""One more of the objects counted before; ``THING`` is a placeholder for the noun."""
_PART_OF_IT = re.compile(r"\b(?:one|an?|the (?:first|other))\b")
_PAIR = re.compile(r"\bpairs? of (?=(?:\w+ )?(?:forceps|scissors|tweezers|pliers|jaws)\b)")
"""Single object called a pair."""
_IN_ALL = re.compile(
    rf"(?P<n>{_N})\s+(?:\w+ )?(?:in total|altogether|in all|all told|overall|insgesamt|en total|au total)\b"
)
_NO_TOTAL = re.compile(r"\b(?:count|number|total|sum|result)\b[^.;\n]{0,40}?\b(?:is|of|=|:)\s*")


def count(low: str, item: int | None) -> Found | None:
    """Return the count in a text as an interval of whole numbers, or None.

    Args:
        low: The plain text in lower case.
        item: Official id of the question, which determines the counted noun.
    """
    low = _TIMES.sub(lambda match: (match[1] or match[2]).rjust(len(match[0])), low)
    masked = without(_PAIR, low)
    masked = without(OTHER_NUMBERS, masked)
    noun = THINGS.get(item, THINGS[None])
    if item in _OTHER_THINGS:
        masked = _without_other_things(masked, noun, _OTHER_THINGS[item])
    if (total_stated := _IN_ALL.search(masked)) is not None:
        return ranges(Range(_number(total_stated["n"]), _number(total_stated["n"]))), *total_stated.span("n")
    total = _NO_TOTAL.search(masked)
    if (
        total is not None
        and (counted := _bounded(masked, total.end())) is not None
        and not masked[total.end() : counted[1]].strip()
    ):
        return counted
    if (with_others := _with_others(low, item, noun)) is not None:
        return with_others
    masked = _in_lines(masked)
    if (in_list := _listed(masked, noun, _SECTION.get(item))) is not None:
        _, begin, end = in_list
        first = _NUMBER.search(masked)
        if first is None or (first.start() >= begin and first.end() <= end):
            return in_list
    if len(_LINE.findall(masked)) > 1:
        masked = _LINE.sub(lambda match: " " * (match.start("what") - match.start()) + match["what"], masked)
    added = _sum(masked, noun) if item in (FINDINGS, INSTRUMENTS) else None
    if (concluded := _CONCLUDED.search(masked)) is not None:
        number = 0.0 if concluded["none"] else _number(concluded["n"])
        return ranges(Range(number, number)), *concluded.span()
    counted = _bounded(masked, 0)
    if counted is not None and added is None and _grows(masked, counted):
        return None
    if counted is not None:
        return added if added is not None and not _headed(masked, counted) else counted
    if (plural := _SEVERAL.search(masked)) is not None and not negated(masked, *plural.span()):
        return ranges(Range(2, math.inf)), *plural.span()
    if added is not None:
        return added
    return _without_numbers(low, noun, _SECTION.get(item))


def _without_other_things(low: str, noun: str, others: str) -> str:
    """Return a text without the numbers of other objects, if it also names the counted noun."""
    number = rf"(?:{_N}|\ban?\b)\s+(?:(?!{noun}\b|and\b|or\b|of\b)[^\W\d]+\s+){{0,2}}?{others}\b"
    mention = re.search(rf"\b{noun}\b", re.sub(number, "", low))
    if mention is None:
        return low
    return without(re.compile(number), low)


def _with_others(low: str, item: int | None, noun: str) -> Found | None:
    """Return the count before "another one", plus one for each; None for "two: one here, another there"."""
    pattern = _ANOTHER.replace("THING", noun)
    additions = [match for match in re.finditer(pattern, low) if not negated(low, *match.span())]
    base = count(low[: additions[0].start()], item) if additions else None
    if base is None or not isinstance(base[0], Ranges):
        return None
    (first, *further), start, end = base[0].ranges, base[1], base[2]
    if further or first.low != first.high or first.low < 1:
        return None
    if first.low > 1 and _PART_OF_IT.search(low, end, additions[0].start()):
        return None
    return ranges(Range(first.low + len(additions), first.low + len(additions))), start, additions[-1].end()


def _in_lines(low: str) -> str:
    """Return a text with the points of an inline list, "1. polyp 2. ulcer", on separate lines."""
    points = list(_INLINE.finditer(low))
    if len(points) < 2 or [int(point["n"]) for point in points] != list(range(1, len(points) + 1)):
        return low
    for point in points:
        if point.start():
            low = f"{low[: point.start() - 1]}\n{low[point.start() :]}"
        low = blanked(low, point.start("open"), point.end("open"))
    return low


def _listed(low: str, noun: str, section: str | None) -> Found | None:
    """Return the number of lines of a list of at least two points, or numbered from 1, that each name the noun."""
    lines = list(_LINE.finditer(low))
    numbers = [int(line["n"]) for line in lines if line["n"] is not None]
    if len(lines) < 2 or numbers not in ([], list(range(1, len(lines) + 1))):
        return None
    subject = re.compile(rf"(?:(?!no\b|not\b|there\b)[^\s\d.:]+\s+){{0,3}}?{noun}\b")
    for line in lines:
        head = re.split(r"[,:(.]", line["what"])[0]
        if not subject.match(line["what"]) and not (section is not None and lexicon.affirmed(section, head)):
            return None
    number = float(len(lines))
    return ranges(Range(number, number)), lines[0].start(), lines[-1].end()


def _bounded(low: str, start: int) -> Found | None:
    """Return the first number from a position on, with the words that make it a bound or a range."""
    first = _NUMBER.search(low, start)
    tries: list[tuple[int, int, Range]] = []
    if (match := _RANGE.search(low, start)) is not None:
        low_end, high_end = sorted(_number(text) for text in match.groups() if text is not None)
        if low_end < high_end:
            tries.append((match.start(), match.end(), Range(low_end, high_end)))
    for pattern in (_AT_LEAST, _MORE, _AT_MOST):
        if (match := pattern.search(low, start)) is not None:
            number = _number(next(text for text in match.groups() if text is not None))
            bound = Range(0, number) if pattern is _AT_MOST else Range(number + (pattern is _MORE), math.inf)
            tries.append((match.start(), match.end(), bound))
    if first is not None:
        tries.append((first.start(), first.end(), Range(_number(first[0]), _number(first[0]))))
    if not tries:
        return None
    begin, end, interval = min(tries, key=lambda candidate: (candidate[0], -candidate[1]))
    return (ranges(interval), begin, end) if interval.low <= MOST else None


def _grows(low: str, counted: Found) -> bool:
    """Return True if a larger number follows the first: "one here, ... two", which is ambiguous."""
    first = counted[0].ranges[0] if isinstance(counted[0], Ranges) else None
    if first is None or first.low != first.high or first.low < 1:
        return False
    return any(_number(number[0]) > first.high for number in _NUMBER.finditer(low, counted[2]))


def _number(text: str) -> float:
    return float(NUMERALS[text]) if text in NUMERALS else float(text)


def _headed(low: str, counted: Found) -> bool:
    """Return True if a number counts findings or instruments as such, so that what follows lists them again."""
    return (
        re.match(r"\s*(?:\w+\s+){0,2}?(?:findings?|abnormalit(?:y|ies)|instruments?|lesions?)\b", low[counted[2] :])
        is not None
    )


def _sum(low: str, noun: str) -> Found | None:
    """Return the sum of a list such as "one polyp and two ulcers"."""
    part = rf"(?P<n>{_N}|\ban?\b)\s+(?:(?!and\b|or\b)[^\W\d]+\s+){{0,2}}?{noun}\b"
    parts = [match for match in re.finditer(part, low) if not negated(low, *match.span())]
    joined = all(
        re.fullmatch(r"\s*(?:,\s*)?(?:and|plus|\+|,)?\s*", low[first.end() : second.start()])
        for first, second in zip(parts, parts[1:], strict=False)
    )
    if len(parts) < 2 or not joined:
        return None
    number = sum(1.0 if match["n"] in ("a", "an") else _number(match["n"]) for match in parts)
    return ranges(Range(number, number)), parts[0].start(), parts[-1].end()


def _named_alone(low: str, noun: str, section: str | None) -> Found | None:
    """Return the count of objects named without a number: "snare and forceps" are two, "polyp in the corner" is one."""
    if section is not None:
        mentions = [mention for mention in lexicon.affirmed(section, low) if _is_one(low[mention[1] : mention[2]])]
        in_list = len(mentions) > 1 and all(
            re.fullmatch(
                r"\W*(?:(?:,|and|&|\+|plus|und|y|et)\s*)?(?:(?:an?"
                r"|the)\s+)?(?:\w+\s+){0,2}?",
                low[first[2] : second[1]],
            )
            for first, second in itertools.pairwise(mentions)
        )
        if in_list and len({name for name, _, _ in mentions}) == len(mentions):
            return ranges(Range(len(mentions), len(mentions))), mentions[0][1], mentions[-1][2]
        if len(mentions) == 1 and not low[: mentions[0][1]].strip(" .:-\u25aa"):
            return ranges(Range(1, 1)), *mentions[0][1:]
    single = (
        re.match(rf"\W*(?:(?!no\b|not\b|without\b)[^\W\d]+\s+){{0,2}}?(?P<thing>{noun})\b", low)
        if noun != r"\w+"
        else None
    )
    if single is None or not _is_one(single["thing"]) or negated(low, *single.span("thing")):
        return None
    return ranges(Range(1, 1)), *single.span("thing")


def _is_one(word: str) -> bool:
    """Return True if a noun is singular, judged by its ending."""
    return word.endswith(("forceps", "ss", "itis", "is", "us")) or not word.endswith(("s", "polypen", "instrumente"))


def _without_numbers(low: str, noun: str, section: str | None) -> Found | None:
    """Return 0 for denied objects, and 1 for "a polyp"."""
    unseen = _SEES_NONE.search(low)
    denial = nothing(low) or (unseen and unseen.span())
    lead = leading(low)
    if denial is not None or (lead is not None and not lead[0]):
        place = denial or (lead[1] if lead else (0, 0))
        return ranges(Range(0, 0)), *place
    if (alone := _named_alone(low, noun, section)) is not None:
        return alone
    denied: Found | None = None
    for match in (
        re.finditer(
            rf"(?P<article>\b(?:an?|the|(?:just|only) (?:the|that))\s+(?:\w+\s+){{0,4}}?)?(?P<thing>{noun})\b", low
        )
        if noun != r"\w+"
        else ()
    ):
        if negated(low, match.start("thing"), match.end()) or negated(low, match.start(), match.end()):
            denied = denied or (ranges(Range(0, 0)), *match.span("thing"))
        elif match["article"] and not match["article"].startswith("the"):
            return ranges(Range(1, 1)), *match.span()
    return denied
