"""Sets of names: abnormalities, landmarks, instruments, procedures, polyp types."""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon import words as lexicon
from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.scope import negated
from medtest.language.questions.answers.states import leading, nothing
from medtest.language.questions.answers.values.readings import Found
from medtest.language.questions.values import NO, YES, names

SECTIONS: dict[int, str] = {12: "abnormality", 13: "landmark", 14: "instrument"}
"""Section of the lexicon of each question about findings (official ids)."""

_TEXTS = texts(__file__)
_SOMETHING: dict[str, re.Pattern[str]] = {
    "abnormality": re.compile(_TEXTS["something_abnormality"]),
    "landmark": re.compile(_TEXTS["something_landmark"]),
    "instrument": re.compile(_TEXTS["something_instrument"]),
}
_ODDS = re.compile(r"[\s:=(]{0,3}(?:p ?= ?)?(?:(?P<percent>\d{1,3}(?:\.\d+)?) ?%|(?P<share>[01]?\.\d+))")
NORMAL = re.compile(_TEXTS["normal"])
_WIDER: dict[str, frozenset[str]] = {
    "barretts": frozenset({"short_segment_barretts"}),
    "inflammation": frozenset({"ulcerative_colitis", "oesophagitis"}),
    "endoscopy": frozenset(
        {"colonoscopy", "gastroscopy", "capsule_endoscopy", "sigmoidoscopy", "bronchoscopy", "enteroscopy", "ercp"}
    ),
    "erythema": frozenset({"ulcerative_colitis", "oesophagitis", "inflammation"}),
}
"""A name says nothing new beside one of these."""

_PARIS = re.compile(_TEXTS["paris"])
_DIGITS = re.compile(_TEXTS["digits"])
"""Classes of Paris written with digits or a blank: "type 1s", "0-2a", "Paris I p"."""
_STALK = re.compile(r"\b(?:stalk|pedicle|peduncle|stem|stiel|ped\u00edculo|p\u00e9dicule|tallo)\b")
_BARE = re.compile(_TEXTS["bare"])


def findings(low: str, section: str) -> Found | None:
    """Return the findings that a text affirms; ``no`` for none, ``yes`` for some without a name."""
    found = _specific(_likely(low, lexicon.affirmed(section, low)))
    if found:
        return names(*(name for name, _, _ in found)), found[0][1], found[-1][2]
    lead = leading(low)
    if lead is not None:
        return names(YES if lead[0] else NO), *lead[1]
    if (none := nothing(low)) is not None:
        return names(NO), *none
    things = [(one.start(), one.end()) for one in _SOMETHING[section].finditer(low)]
    there = [place for place in things if not negated(low, *place) and not _called_normal(low, place[0])]
    if there:
        return names(YES), *there[0]
    denied = [*things, *((start, end) for _, start, end in lexicon.mentions(section, low))]
    if denied:
        return names(NO), *denied[0]
    if section == "abnormality" and (normal := NORMAL.search(low)) is not None:
        return names(NO if not negated(low, *normal.span()) else YES), *normal.span()
    return None


def _likely(low: str, found: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Return the names that a text gives even odds or more, where it gives odds of several: "polyp 88 %, ulcer 7 %"."""
    odds = [_ODDS.match(low, end) for _, _, end in found]
    if len(found) < 2 or None in odds:
        return found
    shares = [float(one["percent"]) / 100 if one["percent"] else float(one["share"]) for one in odds if one]
    return [one for one, share in zip(found, shares, strict=True) if share >= 0.5]


def _called_normal(low: str, start: int) -> bool:
    """Say whether the word before a place calls it normal: "normal findings"."""
    before = low[max(0, start - 30) : start]
    return any(not before[one.end() :].strip() for one in NORMAL.finditer(before))


def procedure(low: str) -> Found | None:
    """Return the procedures that a text names."""
    found = _specific(lexicon.affirmed("procedure", low))
    return (names(*(name for name, _, _ in found)), found[0][1], found[-1][2]) if found else None


def polyp_type(text: str, low: str) -> Found | None:
    """Return the polyp types that a text names: classes of Paris, their words, or histology.

    Args:
        text: The plain text, case kept: "Is" is a class, "is" mostly a verb.
        low: The same in lower case.
    """
    found = [(name, start, end) for name, start, end in lexicon.affirmed("polyp_type", low)]
    for one in _PARIS.finditer(low):
        group = "code" if one["code"] else "zero"
        if not negated(low, one.start(group), one.end(group)):
            found.append((one[group], *one.span(group)))
    found += [(one[0].lower(), *one.span()) for one in _BARE.finditer(text) if not negated(low, *one.span())]
    for one in _DIGITS.finditer(low):
        if not negated(low, *one.span("code")):
            code = re.sub(r"\s", "", one["code"]).replace("1", "i").replace("2", "ii")
            found.append((code, *one.span("code")))
    if not found and (stalk := _STALK.search(low)) is not None:
        found.append(("is" if negated(low, *stalk.span()) else "ip", *stalk.span()))
    if not found:
        return None
    found.sort(key=lambda one: one[1])
    return names(*(name for name, _, _ in found)), found[0][1], max(end for _, _, end in found)


def _specific(found: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    there = {name for name, _, _ in found}
    return [one for one in found if not _WIDER.get(one[0], frozenset()) & there]
