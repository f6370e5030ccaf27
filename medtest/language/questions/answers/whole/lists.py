"""Whether several names stand in one list, or are set against one another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from medtest.language.questions.answers.extract.size import SIZE
from medtest.language.questions.answers.lexicon import words as lexicon

_COMPARED_NEXT = re.compile(r"(?:\b(?:than|over|under|above|below)|[<>\u2264\u2265])\s*\Z")
"""How the next interval of a list begins."""
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
_ISNT = re.compile(r"\A[^.;\n]*\b(?:is|are|was|were|be|versus|vs|pass|mistaken|like|than)\b[^.;\n]*\Z")


def listed(said: str, parts: Sequence[tuple[int, int]]) -> bool:
    """Say whether names stand in one list, or make one extent.

    Args:
        said: What they were read from.
        parts: First character and end of each, in any order.
    """
    places = sorted(parts)
    return bool(places) and all(
        _BETWEEN.fullmatch(said[one[1] : two[0]]) for one, two in pairwise(places) if one[1] < two[0]
    )


def said_again(said: str, parts: Sequence[tuple[int, int]]) -> bool:
    """Say whether one of several words stands there twice: a list to choose from, and what was chosen."""
    written = [said[first:last] for first, last in parts]
    return len(set(written)) < len(written)


def sizes_listed(said: str) -> bool:
    """Say whether sizes stand in one list."""
    places = [one.span() for one in SIZE.finditer(said)]
    return all(_BETWEEN.fullmatch(_COMPARED_NEXT.sub("", said[one[1] : two[0]])) for one, two in pairwise(places))


def apart(low: str, section: str) -> str:
    """Return what stands between two names of one clause that makes them no list, "" where nothing does.

    Args:
        low: The plain text in lower case.
        section: The names' section of the lexicon.
    """
    said = lexicon.affirmed(section, low)
    if len({name for name, _, _ in said}) < len(said):
        return "a name again"
    for (_, _, one), (_, two, _) in pairwise(said):
        between = low[one:two]
        if one < two and _ISNT.search(between):
            return f"apart {between}"
    return ""
