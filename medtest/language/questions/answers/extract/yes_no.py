"""Yes or no, stated directly or by presence and absence."""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.scope import clauses, negated
from medtest.language.questions.answers.states import leading, nothing, short
from medtest.language.questions.answers.values.answer import State
from medtest.language.questions.answers.values.readings import Found, blanked
from medtest.language.questions.values import NO, YES, names

REMOVED, EASY, BOX, TEXT = 1, 2, 3, 4
"""Yes/no questions with specific wordings (official ids)."""

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
"""Nouns that a "no" must govern to answer the question."""


def yes_no(low: str, item: int | None) -> Found | None:
    """Return the yes or no in a text, or None.

    Args:
        low: The plain text in lower case.
        item: Official id of the question; None for other questions.
    """
    if item == REMOVED and (match := _NO_REST.match(low)) is not None:
        return _of(True, *match.span())
    if item == REMOVED and (match := _BUT_ONE.search(low)) is not None:
        return _of(False, *match.span())
    if item == REMOVED and (partial := _SOME_OF.search(low)) is not None:
        return _of(_number_of(partial["some"]) == _number_of(partial["all"]), *partial.span())
    if item == REMOVED and (answer := _removed_without_polyps(low)):
        return answer
    if item in _SUBJECTS and (answer := _listed(low, _SUBJECTS[item])):
        return answer
    if item == EASY and (no_finding := _NO_FINDING.match(low.lstrip())) is not None:
        return State.NOT_RELEVANT, len(low) - len(low.lstrip()), len(low) - len(low.lstrip()) + no_finding.end()
    lead = leading(low)
    if lead is not None:
        return _of(lead[0], *lead[1])
    if (brief := short(low)) is not None:
        return _of(brief[0], *brief[1])
    if (inside := _INSIDE.search(low)) is not None:
        return _of(inside[1] == YES, *inside.span(1))
    if item == REMOVED:
        return _removed(low)
    if item == EASY:
        return _easy(low)
    if item in _SUBJECTS and (answer := _subject(low, _SUBJECTS[item], _FREE[item])):
        return answer
    return _alone(low, item)


def _of(answer: bool, start: int, end: int) -> Found:
    return names(YES if answer else NO), start, end


def _number_of(text: str) -> int:
    return _NUMBERS.index(text) if text in _NUMBERS else int(text)


def _removed_without_polyps(low: str) -> Found | None:
    """Return the answer of a text that begins with "no polyps": none remain, or the question does not apply."""
    match = _NO_POLYP.search(low)
    if match is None or re.search(r"\w", _THERE_IS.sub("", low[: match.start()])):
        return None
    if _REMAIN.search(low[match.start() : match.end() + 30]):
        return _of(True, *match.span())
    return State.NOT_RELEVANT, match.start(), match.end()


def _removed(low: str) -> Found | None:
    if (match := _NOT_REMOVED.search(low)) is not None:
        return _of(False, *match.span())
    if (match := _WAS_REMOVED.search(low)) is not None:
        return _of(not negated(low, *match.span()), *match.span())
    if (denial := nothing(low)) is not None:
        return State.NOT_RELEVANT, *denial
    for polyp in _POLYP.finditer(low):  # a polyp that is present was not removed
        if not negated(low, *polyp.span()) and not _ALL_OF.search(low[: polyp.start()]):
            return _of(False, *polyp.span())
    return None


def _easy(low: str) -> Found | None:
    if (no_finding := _NO_FINDING.search(low)) is not None:
        return State.NOT_RELEVANT, no_finding.start(), no_finding.end()
    for first, last in clauses(low):
        part = low[first:last]
        hard, easy = _HARD.search(part), _EASY.search(part)
        decisive = hard if hard and (easy is None or hard.start() <= easy.start()) else easy
        if decisive is not None:
            start, end = first + decisive.start(), first + decisive.end()
            answer = decisive is easy
            return _of(answer != negated(low, start, end) if "not" not in decisive[0] else answer, start, end)
    return None


def _listed(low: str, subject: re.Pattern[str]) -> Found | None:
    """Return the answer of a list ("green box: no", "black box: yes"): yes if any line says so."""
    lines = [line for line in _ITEM.finditer(low) if subject.search(low, line.start(), line.start("said"))]
    if len(lines) < 2:
        return None
    yes = [line for line in lines if line["said"] in ("yes", "true", "present", "ja", "s\u00ed", "oui")]
    return _of(bool(yes), *(yes or lines)[0].span("said"))


def _subject(low: str, subject: re.Pattern[str], item_free: re.Pattern[str] | None) -> Found | None:
    """Return yes if the subject is mentioned and not denied, no if it is only denied."""
    denied: Found | None = None
    if item_free is not None and (free := item_free.search(low)) is not None:
        denied = _of(negated(low, *free.span()), *free.span())
        low = blanked(low, *free.span())
    for match in subject.finditer(low):
        if not negated(low, *match.span()) and not _ONLY_OTHERS.search(low[: match.start()]):
            return _of(True, *match.span())
        denied = denied or _of(False, *match.span())
    return denied


def _alone(low: str, item: int | None) -> Found | None:
    if (denial := nothing(low)) is not None:
        return _of(False, *denial)
    if (absent := _ISNT.match(low) or _ABSENT.match(low)) is not None:
        return _of(False, *absent.span())
    if item in _SUBJECTS and (only := _ONLY.search(low)) is not None:
        return _of(False, *only.span())
    if (presence := _THERE.match(low.lstrip())) is not None:
        start = len(low) - len(low.lstrip())
        return _of(True, start, start + presence.end())
    return None
