"""Non-answers in a text: refusals, disclaimers, advice to see a doctor, polite phrases.

Each is a part of a sentence, and only that part is ignored. An answer is a refusal only if no part gives a value:
"There are no polyps. For an accurate assessment, please consult a gastroenterologist." is not a refusal.
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
"""General statements, which often accompany a refusal: "Polyps are growths on the lining"."""
_CUT = re.compile(_TEXTS["cut"])

_OPENING = re.compile(_TEXTS["opening"])
_TURN = re.compile(r"[\W_]*(?:but|however|still|yet|nevertheless|nonetheless|that (?:being )?said)\b")


def opening(low: str) -> int:
    """Return the end of introductory phrases without content: "Sure! Based on the image, ...", "..., but"."""
    end = 0
    for pattern in (_TURN, _OPENING, _OPENING):
        match = pattern.match(low, end)
        end = end if match is None else match.end()
    return end


@lru_cache(maxsize=64)
def unsaid(low: str) -> tuple[tuple[tuple[int, int], ...], bool]:
    """Return the spans of all non-answers in a text, and whether any is a refusal.

    Args:
        low: The plain text in lower case.
    """
    parts = _parts(low)
    refused = [bool(refusals(low[first:last])) for first, last in parts]
    any_refused = any(refused)
    return tuple(
        (first, last)
        for (first, last), no in zip(parts, refused, strict=True)
        if no
        or _ASIDE.search(low[first:last])
        or _advice(low[first:last])
        or (any_refused and _GENERAL.match(low[first:last]))
    ), any_refused


def _advice(part: str) -> bool:
    return _EXPERT.search(part) is not None and _ADVISES.search(part) is not None


def _parts(low: str) -> list[tuple[int, int]]:
    """Return the independent parts of a text: clauses, cut where a new subject begins."""
    parts: list[tuple[int, int]] = []
    for first, last in clauses(low):
        begin = first
        for boundary in _CUT.finditer(low[first:last]):
            cut = first + (
                boundary.end() if boundary["behind"] or boundary["closing"] else boundary.start(str(boundary.lastgroup))
            )
            if low[begin:cut].strip():
                parts.append((begin, cut))
                begin = cut
        parts.append((begin, last))
    return parts
