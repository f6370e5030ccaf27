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
"""Section of the lexicon for each question about findings (official ids)."""

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
"""Names that make another name redundant."""

_PARIS = re.compile(_TEXTS["paris"])
_DIGITS = re.compile(_TEXTS["digits"])
"""Paris classes written with digits or a space: "type 1s", "0-2a", "Paris I p"."""
_STALK = re.compile(r"\b(?:stalk|pedicle|peduncle|stem|stiel|ped\u00edculo|p\u00e9dicule|tallo)\b")
_BARE = re.compile(_TEXTS["bare"])


def findings(low: str, section: str) -> Found | None:
    """Return the findings that a text affirms; ``no`` for none, ``yes`` for unnamed ones."""
    mentions = _specific(_likely(low, lexicon.affirmed(section, low)))
    if mentions:
        return names(*(name for name, _, _ in mentions)), mentions[0][1], mentions[-1][2]
    lead = leading(low)
    if lead is not None:
        return names(YES if lead[0] else NO), *lead[1]
    if (denial := nothing(low)) is not None:
        return names(NO), *denial
    spans = [(match.start(), match.end()) for match in _SOMETHING[section].finditer(low)]
    affirmed = [place for place in spans if not negated(low, *place) and not _called_normal(low, place[0])]
    if affirmed:
        return names(YES), *affirmed[0]
    denied = [*spans, *((start, end) for _, start, end in lexicon.mentions(section, low))]
    if denied:
        return names(NO), *denied[0]
    if section == "abnormality" and (normal := NORMAL.search(low)) is not None:
        return names(NO if not negated(low, *normal.span()) else YES), *normal.span()
    return None


def _likely(low: str, mentions: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Return the names with odds of at least one half, if a text gives odds for several: "polyp 88 %, ulcer 7 %"."""
    odds = [_ODDS.match(low, end) for _, _, end in mentions]
    if len(mentions) < 2 or None in odds:
        return mentions
    shares = [float(match["percent"]) / 100 if match["percent"] else float(match["share"]) for match in odds if match]
    return [mention for mention, share in zip(mentions, shares, strict=True) if share >= 0.5]


def _called_normal(low: str, start: int) -> bool:
    """Return True if the preceding word calls something normal: "normal findings"."""
    preceding = low[max(0, start - 30) : start]
    return any(not preceding[match.end() :].strip() for match in NORMAL.finditer(preceding))


def procedure(low: str) -> Found | None:
    """Return the procedures named in a text."""
    mentions = _specific(lexicon.affirmed("procedure", low))
    return (names(*(name for name, _, _ in mentions)), mentions[0][1], mentions[-1][2]) if mentions else None


def polyp_type(text: str, low: str) -> Found | None:
    """Return the polyp types named in a text: Paris classes, their words, or histology.

    Args:
        text: The plain text with its case: "Is" is a class, "is" mostly a verb.
        low: The same in lower case.
    """
    mentions = [(name, start, end) for name, start, end in lexicon.affirmed("polyp_type", low)]
    for match in _PARIS.finditer(low):
        group = "code" if match["code"] else "zero"
        if not negated(low, match.start(group), match.end(group)):
            mentions.append((match[group], *match.span(group)))
    mentions += [(match[0].lower(), *match.span()) for match in _BARE.finditer(text) if not negated(low, *match.span())]
    for match in _DIGITS.finditer(low):
        if not negated(low, *match.span("code")):
            code = re.sub(r"\s", "", match["code"]).replace("1", "i").replace("2", "ii")
            mentions.append((code, *match.span("code")))
    if not mentions and (stalk := _STALK.search(low)) is not None:
        mentions.append(("is" if negated(low, *stalk.span()) else "ip", *stalk.span()))
    if not mentions:
        return None
    mentions.sort(key=lambda mention: mention[1])
    return names(*(name for name, _, _ in mentions)), mentions[0][1], max(end for _, _, end in mentions)


def _specific(mentions: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    present = {name for name, _, _ in mentions}
    return [mention for mention in mentions if not _WIDER.get(mention[0], frozenset()) & present]
