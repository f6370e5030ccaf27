"""Yes or no: said outright, or by saying that something is there or not."""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.scope import clauses, negated
from medtest.language.questions.answers.states import leading, nothing, short
from medtest.language.questions.answers.values.answer import State
from medtest.language.questions.answers.values.readings import Found, blanked
from medtest.language.questions.values import NO, YES, names

REMOVED, EASY, BOX, TEXT = 1, 2, 3, 4
"""Questions whose yes or no has words of its own (official ids)."""

_TEXTS = texts(__file__)
_SUBJECTS: dict[int, re.Pattern[str]] = {
    BOX: re.compile(_TEXTS["subjects_box"]),
    TEXT: re.compile(_TEXTS["subjects_text"]),
}
_NO_POLYP = re.compile(_TEXTS["no_polyp"])
_FREE: dict[int, re.Pattern[str]] = {
    BOX: re.compile(r"\b(?:artefact|artifact|box)[\s-]?(?:free|less)\b"),
    TEXT: re.compile(r"\btext[\s-]?(?:free|less)\b"),
}
"""Words that deny the subject by their ending."""
_ITEM = re.compile(r"(?m)^[^:\n]{1,60}?[:=]\s*(?P<said>yes|no|true|false|present|absent|ja|nein|s\u00ed|oui|non)\b")
_REMAIN = re.compile(r"\b(?:remain(?:s|ing)?|left|still|residual|remnants?|leftover|further)\b")
_NO_REST = re.compile(r"\A\W*(?:no|without)\s+(?:\w+ )?(?:residual|remaining|remnants?|leftover)\b")
_BUT_ONE = re.compile(_TEXTS["but_one"])
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTED = rf"(?:\d{{1,2}}|{'|'.join(_NUMBERS)})"
_SOME_OF = re.compile(
    rf"\b(?P<some>{_COUNTED}) (?:out )?of (?:the |these )?(?P<all>{_COUNTED}) (?:\w+ ){{0,3}}?(?:removed"
    rf"|resected|excised|snared)\b"
)
_NOT_REMOVED = re.compile(_TEXTS["not_removed"])
_WAS_REMOVED = re.compile(_TEXTS["was_removed"])
_ALL_OF = re.compile(r"\b(?:all|every|each|whether)(?: of)?(?: the)?(?: visible)? \Z")
_POLYP = re.compile(r"\bpolyp(?:s|en|e)?\b|\bp\u00f3lipos?\b|\u606f\u8089")
_HARD = re.compile(_TEXTS["hard"])
_EASY = re.compile(_TEXTS["easy"])
_THERE = re.compile(r"\b(?:present|visible|detected|seen|exists?)\b")
_ABSENT = re.compile(r"\A\W*(?:absent|missing|not (?:present|visible|seen|detected)|without|no\b)")
_THERE_IS = re.compile(r"\bthere (?:is|are|was|were)\b")
_ONLY_OTHERS = re.compile(r"\b(?:the )?only\s+(?:visible |other )?\Z")
_ISNT = re.compile(_TEXTS["isnt"])
_NO_FINDING = re.compile(_TEXTS["no_finding"])
_ONLY = re.compile(_TEXTS["only"])
_INSIDE = re.compile(_TEXTS["inside"])


_GOVERNED = re.compile(r"\b(?:finding|lesion|abnormal\w*|polyp|chance|contrast)")
SUBJECTS: dict[int, re.Pattern[str]] = {
    **_SUBJECTS,
    REMOVED: re.compile(rf"{_POLYP.pattern}|{_REMAIN.pattern}|{_WAS_REMOVED.pattern}"),
    EASY: re.compile(rf"{_EASY.pattern}|{_HARD.pattern}|{_GOVERNED.pattern}"),
}
"""What a "no" before a noun has to govern to answer the question."""


def yes_no(low: str, item: int | None) -> Found | None:
    """Return the yes or no of a text, or None.

    Args:
        low: The plain text in lower case.
        item: Official id of the question; None where it is none of the eighteen.
    """
    if item == REMOVED and (rest := _NO_REST.match(low)) is not None:
        return _of(True, *rest.span())
    if item == REMOVED and (rest := _BUT_ONE.search(low)) is not None:
        return _of(False, *rest.span())
    if item == REMOVED and (some := _SOME_OF.search(low)) is not None:
        return _of(_number_of(some["some"]) == _number_of(some["all"]), *some.span())
    if item == REMOVED and (found := _removed_without_polyps(low)):
        return found
    if item in _SUBJECTS and (found := _listed(low, _SUBJECTS[item])):
        return found
    if item == EASY and (none := _NO_FINDING.match(low.lstrip())) is not None:
        return State.NOT_RELEVANT, len(low) - len(low.lstrip()), len(low) - len(low.lstrip()) + none.end()
    lead = leading(low)
    if lead is not None:
        return _of(lead[0], *lead[1])
    if (few := short(low)) is not None:
        return _of(few[0], *few[1])
    if (inside := _INSIDE.search(low)) is not None:
        return _of(inside[1] == YES, *inside.span(1))
    if item == REMOVED:
        return _removed(low)
    if item == EASY:
        return _easy(low)
    if item in _SUBJECTS and (found := _subject(low, _SUBJECTS[item], _FREE[item])):
        return found
    return _alone(low, item)


def _of(answer: bool, start: int, end: int) -> Found:
    return names(YES if answer else NO), start, end


def _number_of(said: str) -> int:
    return _NUMBERS.index(said) if said in _NUMBERS else int(said)


def _removed_without_polyps(low: str) -> Found | None:
    """Return the answer of a text that begins with "no polyps": none remain, or the question does not apply."""
    found = _NO_POLYP.search(low)
    if found is None or re.search(r"\w", _THERE_IS.sub("", low[: found.start()])):
        return None
    if _REMAIN.search(low[found.start() : found.end() + 30]):
        return _of(True, *found.span())
    return State.NOT_RELEVANT, found.start(), found.end()


def _removed(low: str) -> Found | None:
    if (found := _NOT_REMOVED.search(low)) is not None:
        return _of(False, *found.span())
    if (found := _WAS_REMOVED.search(low)) is not None:
        return _of(not negated(low, *found.span()), *found.span())
    if (none := nothing(low)) is not None:
        return State.NOT_RELEVANT, *none
    for one in _POLYP.finditer(low):  # one that is there has not been removed
        if not negated(low, *one.span()) and not _ALL_OF.search(low[: one.start()]):
            return _of(False, *one.span())
    return None


def _easy(low: str) -> Found | None:
    if (none := _NO_FINDING.search(low)) is not None:
        return State.NOT_RELEVANT, none.start(), none.end()
    for first, last in clauses(low):
        part = low[first:last]
        hard, easy = _HARD.search(part), _EASY.search(part)
        found = hard if hard and (easy is None or hard.start() <= easy.start()) else easy
        if found is not None:
            start, end = first + found.start(), first + found.end()
            answer = found is easy
            return _of(answer != negated(low, start, end) if "not" not in found[0] else answer, start, end)
    return None


def _listed(low: str, subject: re.Pattern[str]) -> Found | None:
    """Return the answer of a list ("green box: no", "black box: yes"): yes where any of its lines says so."""
    lines = [one for one in _ITEM.finditer(low) if subject.search(low, one.start(), one.start("said"))]
    if len(lines) < 2:
        return None
    yes = [one for one in lines if one["said"] in ("yes", "true", "present", "ja", "s\u00ed", "oui")]
    return _of(bool(yes), *(yes or lines)[0].span("said"))


def _subject(low: str, subject: re.Pattern[str], item_free: re.Pattern[str] | None) -> Found | None:
    """Return yes where the thing asked about is mentioned and not denied, no where it is denied only."""
    denied: Found | None = None
    if item_free is not None and (free := item_free.search(low)) is not None:
        denied = _of(negated(low, *free.span()), *free.span())
        low = blanked(low, *free.span())
    for found in subject.finditer(low):
        if not negated(low, *found.span()) and not _ONLY_OTHERS.search(low[: found.start()]):
            return _of(True, *found.span())
        denied = denied or _of(False, *found.span())
    return denied


def _alone(low: str, item: int | None) -> Found | None:
    if (none := nothing(low)) is not None:
        return _of(False, *none)
    if (absent := _ISNT.match(low) or _ABSENT.match(low)) is not None:
        return _of(False, *absent.span())
    if item in _SUBJECTS and (only := _ONLY.search(low)) is not None:
        return _of(False, *only.span())
    if (found := _THERE.match(low.lstrip())) is not None:
        start = len(low) - len(low.lstrip())
        return _of(True, start, start + found.end())
    return None
