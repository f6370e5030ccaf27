"""Tests on whether several names form a list or are contrasted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from medtest.language.questions.answers.extract.size import SIZE
from medtest.language.questions.answers.lexicon import words as lexicon

_COMPARED_NEXT = re.compile(r"(?:\b(?:than|over|under|above|below)|[<>\u2264\u2265])\s*\Z")
"""Beginning of the next interval of a list."""
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
"""Text between the names of a list, or between the parts of one extent."""
_ISNT = re.compile(r"\A[^.;\n]*\b(?:is|are|was|were|be|versus|vs|pass|mistaken|like|than)\b[^.;\n]*\Z")


def listed(text: str, parts: Sequence[tuple[int, int]]) -> bool:
    """Return True if names form one list or one extent.

    Args:
        text: Text from which they were read.
        parts: First character and end of each, in any order.
    """
    places = sorted(parts)
    return bool(places) and all(
        _BETWEEN.fullmatch(text[first[1] : second[0]]) for first, second in pairwise(places) if first[1] < second[0]
    )


def said_again(text: str, parts: Sequence[tuple[int, int]]) -> bool:
    """Return True if a word occurs twice: a list of choices, and the choice."""
    spans_text = [text[first:last] for first, last in parts]
    return len(set(spans_text)) < len(spans_text)


def sizes_listed(text: str) -> bool:
    """Return True if sizes form one list."""
    places = [match.span() for match in SIZE.finditer(text)]
    return all(
        _BETWEEN.fullmatch(_COMPARED_NEXT.sub("", text[first[1] : second[0]])) for first, second in pairwise(places)
    )


def apart(low: str, section: str) -> str:
    """Return the text between two names of one clause that contrasts them, or "".

    Args:
        low: The plain text in lower case.
        section: Section of the lexicon with the names.
    """
    mentions = lexicon.affirmed(section, low)
    if len({name for name, _, _ in mentions}) < len(mentions):
        return "a name again"
    for (_, _, first_end), (_, second_start, _) in pairwise(mentions):
        gap = low[first_end:second_start]
        if first_end < second_start and _ISNT.search(gap):
            return f"apart {gap}"
    return ""
