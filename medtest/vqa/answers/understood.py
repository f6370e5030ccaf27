"""Whether a value that was read is all that an answer says: what is left over makes it unparsed.

The readers of the nine kinds look for what they know and pass over the rest. That is right as long as the rest says
nothing: here it is looked at. A value counts only where the clauses that it rests on hold no word that is not in
``vocabulary.txt`` or the lexicon, and no other candidate of its kind is left unexplained: a number that is neither part
of the value nor a share of it, of a tool or of something else that is named, a place outside the cell, names that are
no list, odds, a comparison that made no bound, a "no" that the readers do not know. ``unparsed`` costs a look, and a
value that the writer did not mean is a false verdict.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from medtest.vqa.answers import count, lexicon, named, place, size, yes_no
from medtest.vqa.answers.found import Found
from medtest.vqa.answers.scope import clauses, denials, negated
from medtest.vqa.answers.states import leading, short
from medtest.vqa.values import NO, YES, Kind, Names, Ranges

FILE = Path(__file__).with_name("vocabulary.txt")

_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
_QUOTED = re.compile(r"\"[^\"\n]{1,60}\"")
_ENDINGS = ("'s", "s", "es", "ly", "ed", "d", "ing")
_CHINESE = "\u2e80"
_NUMBER = re.compile(
    r"(?<![\w.,])\d+(?:[.,]\d+)?|(?<![^\W\d_])(?:zero|one|two|three|four|five|six|seven|eight|nine"
    r"|ten|eleven|twelve"
    r"|fifteen|twenty|thirty|dozen|half|quarter)(?![^\W\d_])|\u00bd"
)
_ODDS = re.compile(r"\d\s*%|(?<![\w.,])[01]?\.\d+(?!\s*(?:mm|cm))")
_EITHER = re.compile(
    r"\b(?:versus|vs|alternatively|either|differential|or else|if|unless|suppos\w+|imagine"
    r"|pretend\w*|otherwise|once|provided|as long as|depend\w*|kidding|joking)\b"
    r"|(?<=[a-z)])\s+[<>]\s+(?=[a-z])"
)
"""What sets one candidate against another, or says what is not so."""
_COMPARED = re.compile(
    r"\b(?:more|less|fewer|th[ae]n|over|under|above|below|beyond|exceed\w*|least|most|max|maximum"
    r"|min|minimum|upwards?|larger|smaller"
    r"|bigger|short of|sub|twice|double|triple|times|another|per|every|except|plus|minus)\b|[<>\u2264\u2265]"
)
"""What makes a number the end of an interval or a part of another number."""
_BOUND_BEHIND = re.compile(r"[^.;,\n]{0,30}\bat (?:the )?(?:least|most)\b")
"""What makes a count the end of an interval behind it."""
_COMPARED_NEXT = re.compile(r"(?:\b(?:than|over|under|above|below)|[<>\u2264\u2265])\s*\Z")
"""How the next interval of a list begins."""
_DENIES = re.compile(
    r"\b(?:nil|neg|negative|zero|zilch|nada|minus|missing|lacking|hardly|barely|scarcely"
    r"|(?<!no )doubt\w*|questionable"
    r"|unlikely|mistaken|mimic\w*|false|nowhere|nobody|fail\w*|stripped|free|absent|off|far from"
    r"|anything but|all but|less than"
    r"|(?:might|may|could|would) (?:pass|be taken|be mistaken))\b"
)
"""Words that may deny what stands beside them, other than those whose reach is known."""
_NOT_YET = re.compile(
    r"\b(?:should|will|would|going to|plan\w*|pending|await\w*|soon|almost|nearly|try\w*|attempt\w*"
    r"|until|most\w*|half)\b"
)
"""What says that something has not been done, or not wholly."""
_DISTANCE = re.compile(
    r"\b(?:from (?:the|an?)|away|apart|distance|deep|depth|margins?|marker|anus|anal|incisors|verge"
    r"|insertion|interval|spacing)\b"
)
"""What says that a length is none of the polyp."""
_BUILT = re.compile(r"[{[=(][^\n]*[{[=]|\{[^{}\n]*:|\d\s*/\s*\d|[a-z)]\s+[-+](?=\s*(?:[/,;]|\Z|\w+\s+[-+](?:\s|\Z)))")
"""What is left of fields that could not be told apart."""
_NO_OTHER = re.compile(r"\b(?:other|further|additional|more|second|another|else|besides|elsewhere|only)\b")
_CELL_WORDS = re.compile(
    r"(?<![^\W\d_])(?:up|down|above|below|under|underneath|beneath|over|l|r|u|ul|ur|ll|lr|rt|lt|lft"
    r"|tl|tr|bl|br|[lr][lu]q|quarter"
    r"|diagonal\w*|opposite)(?![^\W\d_])"
)
"""Words of places that make no cell by themselves."""
_BETWEEN = re.compile(
    r"(?:[\s,;/&+:()-]|\b(?:and|with|plus|or|as well as|also|then|to|from|of|in|on|at|the|an?|its"
    r"|both|y|et|und|e|o|ou|oder|bis"
    r"|is|are|it|one|other|another|some|has|having|which|that|parts?|partly|partially|mostly|mainly"
    r"|predominantly|slightly|somewhat"
    r"|pale|dark|light|bright|deep|bit|little|tint|hue|tinge|areas?|spots?|patch\w*|streaks?|centre"
    r"|center|rim|base|cap|surface|colou?r"
    r"|side|corner|part|portion|region|edge|border|area|image|picture|frame|view|third|half"
    r"|extend\w*|reach\w*|through|towards?|into"
    r"|across|along|far|hand|way|all|type|paris|elements?|components?)\b)*"
)
"""What stands between the names of a list, or between the parts of one extent."""
_BEHIND_A_COUNT = re.compile(
    r"\s*(?:[^\w\s]|\Z|\n)|\s+(?:in|on|at|of|here|there|is|are|was|were|can|visible|seen|present"
    r"|shown|total|detected|identified|found"
    r"|separate|distinct|or|and|that|which|with|altogether|overall|along|near|beside|to|i|we|en|es|y"
    r"|und|sind|insgesamt|on|sur|dans"
    r"|im|in|hay|se|so|maybe|perhaps|probably|possibly|as|for|though|only|more|small|large|alone"
    r"|case|each|both|all|from|by|inside|remain\w*|left|appears?|seems?|lies?|things?|ones?|items?)\b|\s*[\u4e2a\u679a\u5904]"
)
"""What may follow a number that counts what was asked about, besides its noun."""
_NO_MORE = re.compile(
    r"it|is|this|that|there|here|in|the|an?|of|image|picture|frame|view|visible|present|seen|shown"
    r"|to|describe|i|see|all"
    r"|not|none|nothing|no|at|colou?r|size|type|location|position|place|answer|thing|such|one|any"
    r"|can|applicable|be|found"
    r"|healthy|normal|mucosa"
)
"""Words beside a "none" that name nothing."""
_ISNT = re.compile(r"\A[^.;\n]*\b(?:is|are|was|were|be|versus|vs|pass|mistaken|like|than)\b[^.;\n]*\Z")
_THIS_ONE = re.compile(r"\b(?:this|that|which|each|any|no) one\Z")
_TENTATIVE = re.compile(
    r"\b(?:looks?|seem\w*|appear\w*|like|resembl\w*|could|might|may|would|first|some|argu\w*|should"
    r"|perhaps|maybe|possibly)\b"
)
_CONTRAST = re.compile(r"[\s,;]*(?:but|yet|however|though|although|whereas|while|aber|pero|mais|mas)\b,?\s{0,2}\w")
_POINT = re.compile(r"(?m)^\W*\d{1,2}[.)]\s")
"""The number of a point of a list."""
_NAMED = re.compile(
    rf"\b(?:{count._THINGS[count.FINDINGS]}|{count._THINGS[count.POLYPS]}|{count._THINGS[count.INSTRUMENTS]}|{count._NOT_POLYPS}"
    rf"|abnormal\w*|mucosa|evidence|signs?|stalk|one|ones|others?|else|doubt|only|just|to|than|sure|certain)\b"
    rf"|{place._PART.pattern}"
)
"""What a "no" may govern, so that it says nothing of the value."""
_ORDINAL = re.compile(r"\b(?:second|third|fourth|2nd|3rd)\b")
_EDGES = frozenset(cell for cell in place.CELLS if "center" in cell)
_FLAT_TYPES = frozenset(("ip", "is", "isp", "iia", "iib", "iic", "iii"))


@cache
def _vocabulary() -> frozenset[str]:
    words = {
        part
        for entries in lexicon.sections().values()
        for several in entries.values()
        for word in several
        for part in _WORD.findall(lexicon.folded(word.lower()))
    }
    return frozenset(FILE.read_text(encoding="utf-8").split()) | words


@cache
def _known(word: str) -> bool:
    vocabulary = _vocabulary()
    if len(word) == 1 or word in vocabulary:
        return True
    if "'" in word and all(_known(part) for part in word.split("'") if part):
        return True
    if word[0] > _CHINESE:
        return all(letter in vocabulary or letter < _CHINESE for letter in word)
    stems = [word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)]
    return any(stem in vocabulary or f"{stem}e" in vocabulary for stem in stems if len(stem) > 2)


def unknown(low: str) -> list[str]:
    """Return the words of a text that are not known; single letters and what is quoted are."""
    return [word for word in _WORD.findall(lexicon.folded(_QUOTED.sub(" ", low))) if not _known(word)]


def left_over(low: str, kind: Kind, item: int | None, found: Found) -> str:
    """Return what a reading leaves unexplained of a text, in a few words; nothing where the text is understood.

    Args:
        low: The plain text in lower case, without what is no answer.
        kind: Type of the question's answer.
        item: Official id of the question.
        found: What was read, with its place in ``low``.
    """
    value, start, end = found
    if kind == Kind.TEXT:
        return ""
    lead = leading(low) or short(low) if kind == Kind.YES_NO else None
    rest = _behind_lead(low, item, lead[0], start, end) if lead is not None and lead[1] == (start, end) else None
    if rest is not None:
        return rest
    first, last = _around(low, start, end)
    part = low[first:last]
    if strange := unknown(part):
        return f"unknown {strange}"
    if (asked := part.find("?")) >= 0 and low[first + asked + 1 :].strip():
        return "question"
    if _CONTRAST.match(low, last) and _TENTATIVE.search(part):
        return "what was not meant"
    if (built := _BUILT.search(_QUOTED.sub(" ", part))) is not None:
        return f"fields {built[0]}"
    if (either := _EITHER.search(part)) is not None:
        return f"either {either[0]}"
    if isinstance(value, Ranges):
        return _of_ranges(low, part, kind, item, value, (start, end))
    if isinstance(value, Names):
        return _of_names(low, part, kind, item, value, (start, end))
    return ""


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
    beside = [word for word in _WORD.findall(f"{low[first:start]} {low[end:last]}") if not _NO_MORE.fullmatch(word)]
    if beside and not any(first <= place[0] < last for place in things):
        return f"nothing of {beside[0]}"
    there = [place for place in things if not (first <= place[0] < last) and not negated(low, *place)]
    return f"there is {low[slice(*there[0])]}" if there else ""


def part_around(low: str, start: int, end: int) -> str:
    """Return the clauses that a place touches."""
    return low[slice(*_around(low, start, end))]


def _unused_no(low: str, part: str, start: int, end: int) -> str:
    """Return a "no" of the deciding clauses that denies nothing that is named: "polyp not have"."""
    begin = low.find(part)
    for one in denials(part):
        if start <= begin + one.start() < end:
            continue
        behind = part[one.end() : one.end() + 60]
        if not (_NAMED.search(behind) or any(lexicon.mentions(section, behind) for section in lexicon.sections())):
            return one[0]
    return ""


def _around(low: str, start: int, end: int) -> tuple[int, int]:
    """Return first character and end of the clauses that a place touches."""
    touched = [(first, last) for first, last in clauses(low) if first < max(end, start + 1) and start < last]
    return (touched[0][0], touched[-1][1]) if touched else (0, len(low))


def _behind_lead(low: str, item: int | None, said: bool, start: int, end: int) -> str | None:
    """Return what speaks against a yes or no at the beginning; None where it has to be looked at like any other."""
    if not re.match(r"\s*(?:[,.;:!)\n-]|\Z)", low[end:]):
        subject = yes_no.SUBJECTS.get(item if item is not None else -1)
        return (
            None
            if low[start:end] != "no" or subject is None or subject.search(low[end : end + 40])
            else "no of something else"
        )
    rest = low[end:].lstrip(" ,.;:!-)\n")
    other = yes_no.yes_no(rest, item) if rest else None
    return "yes and no" if other is not None and str(other[0]) == (NO if said else YES) else ""


def _of_names(low: str, part: str, kind: Kind, item: int | None, value: Names, place_of: tuple[int, int]) -> str:
    start, end = place_of
    several = len(value.names) > 1
    if value.names & {NO} == frozenset() and (denied := _DENIES.search(part)) is not None:
        return f"denied {denied[0]}"
    positive = str(value) != NO and (kind != Kind.YES_NO or item in (yes_no.BOX, yes_no.TEXT))
    if positive and (unused := _unused_no(low, part, start, end)):
        return f"denied {unused}"
    if (several or kind == Kind.YES_NO) and _ODDS.search(low):
        return "odds"
    if item == yes_no.REMOVED and str(value) == YES and (yet := _NOT_YET.search(part)) is not None:
        return f"not yet {yet[0]}"
    if kind == Kind.FINDINGS and str(value) == NO and (strange := unknown(low)):
        return f"unknown {strange}"
    if kind not in (Kind.POLYP_TYPE, Kind.PLACE) and (number := _bare_number(part)):
        return f"number {number}"
    if kind == Kind.FINDINGS and several and (apart := _apart(low, item, start, end)):
        return apart
    if kind == Kind.POLYP_TYPE and len(value.names & _FLAT_TYPES) < 2:
        return ""
    if several and kind != Kind.FINDINGS and not _listed(low[start:end], kind):
        return "no list"
    if kind == Kind.PLACE and len(value.names) == 2 and value.names <= _EDGES:
        return "" if re.search(r"\b(?:and|or|to|y|et|und|ou|oder)\b|[a-z]-[a-z]", low[start:end]) else "one cell or two"
    if kind == Kind.PLACE:
        for one in _CELL_WORDS.finditer(low):
            if not start <= one.start() < end:
                return f"place {one[0]}"
    return ""


def _bare_number(part: str) -> str:
    """Return a number in digits that is none of a measure, an hour or a date and counts nothing that is named."""
    shown = count._OTHER.sub(lambda one: " " * len(one[0]), _QUOTED.sub(lambda one: " " * len(one[0]), part))
    shown = _POINT.sub(lambda one: " " * len(one[0]), shown)
    shown = _ODDS.sub(lambda one: " " * len(one[0]), shown)
    for one in _NUMBER.finditer(shown):
        if one[0][0].isdigit() and not _counts(shown, one.end()):
            return one[0]
    return ""


def _apart(low: str, item: int | None, start: int, end: int) -> str:
    """Return what stands between two names of one clause that makes them no list."""
    section = named.SECTIONS.get(item if item is not None else -1, "abnormality")
    said = lexicon.affirmed(section, low)
    if len({name for name, _, _ in said}) < len(said):
        return "a name again"
    for (_, _, one), (_, two, _) in pairwise(said):
        between = low[one:two]
        if one < two and _ISNT.search(between):
            return f"apart {between}"
    return ""


def _listed(said: str, kind: Kind) -> bool:
    """Say whether the names of a text stand in one list, or make one extent."""
    if kind == Kind.PLACE:
        parts = [one.span() for one in (*place._PART.finditer(said), *place._CLOCK.finditer(said))]
    else:
        parts = [(first, last) for _, first, last in lexicon.mentions(kind.value, said)]
        parts += [one.span() for one in re.finditer(r"\b0?-?i{1,2}(?:sp|s|p|a|b|c)\b", said)]
    parts.sort()
    written = [said[first:last] for first, last in parts]
    if kind != Kind.PLACE and len(set(written)) < len(written):
        return False  # a list to choose from, and what was chosen
    return bool(parts) and all(
        _BETWEEN.fullmatch(said[one[1] : two[0]]) for one, two in pairwise(parts) if one[1] < two[0]
    )


def _of_ranges(low: str, part: str, kind: Kind, item: int | None, value: Ranges, place_of: tuple[int, int]) -> str:
    start, end = place_of
    point = all(one.low == one.high for one in value.ranges)
    if kind == Kind.COUNT:
        return _of_count(low, part, item, value, place_of)
    if len(value.ranges) > 1 and not _sizes_listed(low[start:end]):
        return "several sizes"
    if (distance := _DISTANCE.search(part)) is not None:
        return f"distance {distance[0]}"
    if point and (compared := _COMPARED.search(part)) is not None:
        return f"compared {compared[0]}"
    own = {number for one in value.ranges for number in (one.low, one.high)}
    sizes = [one.span() for one in size._SIZE.finditer(low) if size._of_a_tool(low, *one.span())]
    shown = count._OTHER.sub(lambda one: one[0] if size._SIZE.search(one[0]) else " " * len(one[0]), low)
    for one in _NUMBER.finditer(shown):
        if start <= one.start() < end or any(first <= one.start() < last for first, last in sizes):
            continue
        if not _is(one[0], own) and not (_counts(shown, one.end()) and one[0] not in ("half", "quarter")):
            return f"number {one[0]}"
    return ""


def _sizes_listed(said: str) -> bool:
    places = [one.span() for one in size._SIZE.finditer(said)]
    return all(_BETWEEN.fullmatch(_COMPARED_NEXT.sub("", said[one[1] : two[0]])) for one, two in pairwise(places))


def _is(said: str, numbers: set[float]) -> bool:
    try:
        number = float(said.replace(",", "."))
    except ValueError:
        return float(count._WORDS.get(said, -1)) in numbers
    return number in numbers or number * 10 in numbers


def _counts(low: str, end: int) -> bool:
    """Say whether what stands before a place counts something that is named: "two polyps", "three clips"."""
    noun = "|".join((*(one for item, one in count._THINGS.items() if item is not None), count._NOT_POLYPS))
    return re.match(rf"\s+(?:(?!and\b|or\b)[^\W\d]+\s+){{0,3}}?(?:{noun})\b", low[end:]) is not None


def _of_count(low: str, part: str, item: int | None, value: Ranges, place_of: tuple[int, int]) -> str:
    start, end = place_of
    own = {number for one in value.ranges for number in (one.low, one.high)}
    if min(own) > 0 and (denied := _DENIES.search(part)) is not None:
        return f"denied {denied[0]}"
    if all(one.low == one.high for one in value.ranges) and (bound := _BOUND_BEHIND.match(low, end)) is not None:
        return f"compared {bound[0]}"
    thing = re.compile(rf"\b(?:{count._THINGS.get(item, count._THINGS[None])})\b")
    if min(own) > 0 and item in count._THINGS:
        for one in thing.finditer(low):
            if negated(low, *one.span()) and not _NO_OTHER.search(low[max(0, one.start() - 25) : one.end() + 25]):
                return f"denied {one[0]}"
    if min(own) > 0 and (unused := _unused_no(low, part, start, end)):
        return f"denied {unused}"
    if max(own) == 1 and (ordinal := _ORDINAL.search(low)) is not None and not negated(low, *ordinal.span()):
        return f"number {ordinal[0]}"
    if _THIS_ONE.search(low[:end]) and low[start:end] == "one":
        return "this one"
    shown = _POINT.sub(
        lambda one: one[0] if one.start() <= start < one.end() else " " * len(one[0]),
        count._OTHER.sub(lambda one: " " * len(one[0]), low),
    )
    if (odds := _ODDS.findall(low)) and len(odds) > 1:
        return f"odds {odds[0]}"
    shown = _ODDS.sub(lambda one: " " * len(one[0]), shown)
    numbers = [one for one in _NUMBER.finditer(shown) if not start <= one.start() < end]
    others = [one for one in numbers if not _is(one[0], own)]
    said = [count._WORDS.get(one[0], one[0]) for one in others]
    if sum(float(str(one).replace(",", ".")) for one in said if re.fullmatch(r"[\d.,]+", str(one))) == max(own):
        return ""
    for one in others:
        if one[0] != "one" and not (
            _counts(shown, one.end())
            and not re.search(count._THINGS.get(item, "$^"), shown[one.end() : one.end() + 40])
        ):
            return f"number {one[0]}"
    if _NUMBER.fullmatch(low[start:end]) and not _counts(shown, end) and not _BEHIND_A_COUNT.match(shown, end):
        return "counts something else"
    return ""
