"""Yes or no: said outright, or by saying that something is there or not."""

from __future__ import annotations

import re

from medtest.vqa.answers.answer import State
from medtest.vqa.answers.found import Found
from medtest.vqa.answers.plain import blanked
from medtest.vqa.answers.scope import clauses, negated
from medtest.vqa.answers.states import leading, nothing, refusals
from medtest.vqa.values import NO, YES, names

REMOVED, EASY, BOX, TEXT = 1, 2, 3, 4
"""Questions whose yes or no has words of its own (official ids)."""

_SUBJECTS: dict[int, re.Pattern[str]] = {
    BOX: re.compile(
        r"\b(?:box(?:es)?|rectangle|square|artefacts?|artifacts?|k\u00e4stchen|cuadro|recuadro|bo\u00eete)\b"
    ),
    TEXT: re.compile(
        r"\b(?:texts?|texto|texte|letters?|words?|writing|annotations?|labels?|characters?|captions?"
        r"|numbers|date|timestamp)\b"
    ),
}
_NO_POLYP = re.compile(
    r"\b(?:no|without|not any|kein\w*|aucun|n'y a pas de)\s+(?:\w+\s+){0,2}?(?:polyps?|polypen|polype)\b"
    r"|\bno polyps? \w+"
)
_REMAIN = re.compile(r"\b(?:remain(?:s|ing)?|left|still)\b")
_NOT_REMOVED = re.compile(
    r"\A\W*not (?:all|every|entirely|completely|yet)\b"
    r"|\b(?:not|n't|never)\b[^.;\n]{0,20}\b(?:removed|resected|excised|been removed)\b"
    r"|\bstill\b[^.;\n]{0,25}\b(?:polyp|visible|present|there|in place|in situ)"
    r"|\bpolyps?\b[^.;\n]{0,30}\b(?:remains?|still)\b|\b(?:incomplete|yet to be removed|remaining polyps?|not yet)\b"
)
_WAS_REMOVED = re.compile(r"\b(?:removed|resected|excised|polypectomy is complete|complete resection)\b")
_HARD = re.compile(
    r"\A\W*not (?:particularly|especially|really|very|so|quite)\b"
    r"|\b(?:not (?:\w+ )?(?:easy|easily|obvious|clear|readily)|difficult\w*|hard|challenging|subtle"
    r"|inconspicuous|poorly visible|barely visible|schwer|schwierig|dif\u00edcil|difficile)\b"
)
_EASY = re.compile(
    r"\b(?:eas(?:y|ily)|clear(?:ly)?|obvious(?:ly)?|prominent|conspicuous|readily|stands out|well visible"
    r"|leicht|einfach|f\u00e1cil|facile)\b"
)
_THERE = re.compile(r"\b(?:present|visible|detected|seen|exists?)\b")
_ABSENT = re.compile(r"\A\W*(?:absent|missing|not (?:present|visible|seen|detected)|without|no\b)")
_THERE_IS = re.compile(r"\bthere (?:is|are|was|were)\b")
_ISNT = re.compile(r"\A\W*(?:no, )?there (?:is|are|was|were)(?: not|n't) (?:one|any)\b")
_NO_FINDING = re.compile(r"\b(?:no|without)\s+(?:\w+\s+){0,2}?(?:findings?|abnormalit(?:y|ies)|lesions?)\b")
_INSIDE = re.compile(r",\s*(?:so\s+)?(yes|no)\b")


def yes_no(low: str, item: int | None) -> Found | None:
    """Return the yes or no of a text, or None.

    Args:
        low: The plain text in lower case.
        item: Official id of the question; None where it is none of the eighteen.
    """
    if item == REMOVED and (found := _removed_without_polyps(low)):
        return found
    lead = leading(low)
    if lead is not None:
        return _of(lead[0], *lead[1])
    if item == REMOVED:
        return _removed(low)
    if item == EASY:
        return _easy(low)
    if item in _SUBJECTS and (found := _subject(low, _SUBJECTS[item])):
        return found
    return _alone(low)


def _of(answer: bool, start: int, end: int) -> Found:
    return names(YES if answer else NO), start, end


def _removed_without_polyps(low: str) -> Found | None:
    """Return the answer of a text that begins with "no polyps": none remain, or the question does not apply."""
    found = _NO_POLYP.search(low)
    if found is None or re.search(r"\w", _THERE_IS.sub("", low[: found.start()])):
        return None
    if _REMAIN.search(low[found.start() : found.end() + 30]):
        return _of(True, *found.span())
    return State.NOT_RELEVANT, found.start(), found.end()


def _removed(low: str) -> Found | None:
    refused = refusals(low)
    for first, last in clauses(low):
        if refusals(low[first:last]):
            low = blanked(low, first, last)
    if (found := _NOT_REMOVED.search(low)) is not None:
        return _of(False, *found.span())
    if (found := _WAS_REMOVED.search(low)) is not None:
        return _of(not negated(low, *found.span()), *found.span())
    if not refused and (none := nothing(low)) is not None:
        return State.NOT_RELEVANT, *none
    return None


def _easy(low: str) -> Found | None:
    if (none := _NO_FINDING.search(low)) is not None:
        return State.NOT_RELEVANT, none.start(), none.end()
    for first, last in clauses(low):
        part = low[first:last]
        if refusals(part):
            continue
        hard, easy = _HARD.search(part), _EASY.search(part)
        found = hard if hard and (easy is None or hard.start() <= easy.start()) else easy
        if found is not None:
            start, end = first + found.start(), first + found.end()
            answer = found is easy
            return _of(answer != negated(low, start, end) if "not" not in found[0] else answer, start, end)
    return None


def _subject(low: str, subject: re.Pattern[str]) -> Found | None:
    """Return yes where the thing asked about is mentioned and not denied, no where it is denied only."""
    if refusals(low):
        return None
    denied: Found | None = None
    for found in subject.finditer(low):
        if not negated(low, *found.span()):
            return _of(True, *found.span())
        denied = denied or _of(False, *found.span())
    return denied


def _alone(low: str) -> Found | None:
    if refusals(low):
        return None
    if (none := nothing(low)) is not None:
        return _of(False, *none)
    if (absent := _ISNT.match(low) or _ABSENT.match(low)) is not None:
        return _of(False, *absent.span())
    if (found := _INSIDE.search(low)) is not None:
        return _of(found[1] == YES, *found.span(1))
    if (found := _THERE.match(low.lstrip())) is not None:
        start = len(low) - len(low.lstrip())
        return _of(True, start, start + found.end())
    return None
