"""Refusals, questions that do not apply, hedging, and a yes or no at the beginning of an answer."""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon.texts import texts

_TEXTS = texts(__file__)
_NOT_RELEVANT = re.compile(_TEXTS["not_relevant"])
_DUE = re.compile(_TEXTS["due"])
_REFUSALS = re.compile(_TEXTS["refusals"])
_SEES_NONE = re.compile(r"\b(?:identify|discern|make|locate|recogni[sz]e|pinpoint)\Z")
_ANY = re.compile(r"\s+(?:out\s+)?any\b")
_SURELY = re.compile(_TEXTS["surely"])
_SHORT = re.compile(_TEXTS["short"])
_HEDGES = re.compile(_TEXTS["hedges"])
_LEAD = re.compile(_TEXTS["lead"])
_NOTHING = re.compile(_TEXTS["nothing"])

Span = tuple[int, int]


def not_relevant(low: str) -> tuple[Span, bool] | None:
    """Return the span of a statement that the question does not apply, and whether it blames the picture's quality.

    "Not applicable due to white balance" says nothing about the content of the image and is a refusal.
    """
    match = _NOT_RELEVANT.search(low)
    if match is None:
        return None
    blame = _DUE.match(low[match.end() :])
    return (match.start(), match.end() + (blame.end() if blame else 0)), blame is not None


def refusals(low: str) -> list[Span]:
    """Return the spans of all refusals."""
    return [match.span() for match in _REFUSALS.finditer(low) if not _sees_none(low, match)]


def _sees_none(low: str, match: re.Match[str]) -> bool:
    """Return True if "cannot make out any box" denies a box: the model looked for one and saw none."""
    return bool(_SEES_NONE.search(match[0]) and _ANY.match(low, match.end()) and not _SURELY.search(match[0]))


def hedged(low: str) -> bool:
    """Return True if a text is hedged."""
    return _HEDGES.search(low) is not None


def leading(low: str) -> tuple[bool, Span] | None:
    """Return the yes (True) or no at the beginning of a text, optionally after a label and a colon, and its span."""
    match = _LEAD.match(low)
    if match is None:
        return None
    for group, answer in (("yes", True), ("zh_yes", True), ("no", False), ("zh_no", False)):
        if match[group] is not None:
            return answer, match.span(group)
    return None


def short(low: str) -> tuple[bool, Span] | None:
    """Return the yes (True) or no expressed by a short phrase ("I think so", "unfortunately not"), and its span."""
    match = _SHORT.match(low)
    return None if match is None else (match["yes"] is not None, match.span())


def nothing(low: str) -> Span | None:
    """Return the span of a "none" at the beginning of a text."""
    match = _NOTHING.match(low)
    return (match.end() - len(match[0].lstrip()), match.end()) if match else None
