"""What an answer says that is no answer: refusals, disclaimers, advice to see a doctor, phrases of politeness.

Each is a part of a sentence, and only that part is set aside. A refusal is an answer of which no part gives a value:
"There are no polyps. For an accurate assessment, please consult a gastroenterologist." is none.
"""

from __future__ import annotations

import re
from functools import lru_cache

from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.scope import clauses
from medtest.language.questions.answers.states import refusals

_TEXTS = texts(__file__)
_EXPERT = re.compile(_TEXTS["expert"])
_ASIDE = re.compile(_TEXTS["aside"])
_ADVISES = re.compile(_TEXTS["advises"])
_GENERAL = re.compile(_TEXTS["general"])
"""What is said of things in general, which a refusal mostly goes with: "Polyps are growths on the lining"."""
_CUT = re.compile(_TEXTS["cut"])

_OPENING = re.compile(_TEXTS["opening"])
_TURN = re.compile(r"[\W_]*(?:but|however|still|yet|nevertheless|nonetheless|that (?:being )?said)\b")


def opening(low: str) -> int:
    """Return where a text begins behind phrases that say nothing: "Sure! Based on the image, ...", "..., but"."""
    end = 0
    for pattern in (_TURN, _OPENING, _OPENING):
        found = pattern.match(low, end)
        end = end if found is None else found.end()
    return end


@lru_cache(maxsize=64)
def unsaid(low: str) -> tuple[tuple[tuple[int, int], ...], bool]:
    """Return first character and end of every part of a text that is no answer, and whether one is a refusal.

    Args:
        low: The plain text in lower case.
    """
    parts = _parts(low)
    refused = [bool(refusals(low[first:last])) for first, last in parts]
    some = any(refused)
    return tuple(
        (first, last)
        for (first, last), no in zip(parts, refused, strict=True)
        if no
        or _ASIDE.search(low[first:last])
        or _advice(low[first:last])
        or (some and _GENERAL.match(low[first:last]))
    ), some


def _advice(part: str) -> bool:
    return _EXPERT.search(part) is not None and _ADVISES.search(part) is not None


def _parts(low: str) -> list[tuple[int, int]]:
    """Return the parts of a text that stand or fall by themselves: clauses, cut where a new subject begins."""
    parts: list[tuple[int, int]] = []
    for first, last in clauses(low):
        begin = first
        for one in _CUT.finditer(low[first:last]):
            cut = first + (one.end() if one["behind"] or one["closing"] else one.start(str(one.lastgroup)))
            if low[begin:cut].strip():
                parts.append((begin, cut))
                begin = cut
        parts.append((begin, last))
    return parts
