"""Denials that the readers do not handle: "polyp not have", "anything but a polyp"."""

from __future__ import annotations

import re

from medtest.language.questions.answers.extract.nouns import FINDINGS, INSTRUMENTS, NOT_POLYPS, POLYPS, THINGS
from medtest.language.questions.answers.extract.place import PART
from medtest.language.questions.answers.lexicon import words as lexicon
from medtest.language.questions.answers.scope import denials
from medtest.language.questions.answers.whole.passage import Passage
from medtest.language.questions.answers.whole.words import unknown

_DENIES = re.compile(
    r"\b(?:nil|neg|negative|zero|zilch|nada|minus|missing|lacking|hardly|barely|scarcely"
    r"|(?<!no )doubt\w*|questionable"
    r"|unlikely|mistaken|mimic\w*|false|nowhere|nobody|fail\w*|stripped|free|absent|off|far from"
    r"|anything but|all but|less than"
    r"|(?:might|may|could|would) (?:pass|be taken|be mistaken))\b"
)
"""Words that may deny their neighbours, except those whose scope is known."""
_NAMED = re.compile(
    rf"\b(?:{THINGS[FINDINGS]}|{THINGS[POLYPS]}|{THINGS[INSTRUMENTS]}|{NOT_POLYPS}"
    rf"|abnormal\w*|mucosa|evidence|signs?|stalk|one|ones|others?|else|doubt|only|just|to|than|sure|certain)\b"
    rf"|{PART.pattern}"
)
"""Nouns that a "no" may govern without affecting the value."""
_PHRASE = r"(?:[a-z][a-z'-]+ ){1,3}[a-z][a-z'-]+?"
_PHRASES = rf"(?:(?:an? |any )?{_PHRASE})(?:(?:, | and | or |, and |, or )(?:no )?(?:an? |any )?{_PHRASE})*"
_ABSENT = re.compile(
    r"\W*(?:(?:there(?: is| are|'s)|i (?:can )?(?:see|find)"
    r"|(?:this|the) (?:image|picture|frame) (?:shows|contains|has)) no"
    rf"|no) (?:(?:signs?|evidence|traces?) of )?(?P<things>{_PHRASES})"
    r"(?:(?: is| are| can be)? (?:seen|visible|present|shown|found|detected|identified))?"
    r"(?: (?:in|on|within) (?:this|the) (?:\w+ )?(?:image|picture|frame|view|photo|scan))?\W*"
)
"""Denial of things that makes up a whole answer."""
_OF_ANSWERS = re.compile(
    r"\b(?:bars?|rulers?|scales?|markers?|references?|clues?|ways?|reasons?|ideas?|informations?|details?|metadata"
    r"|comments?|guess(?:es)?|answers?|measurements?|indications?|hints?|context|data|statements?|opinion)\Z"
)
"""Things without which a question cannot be answered; their lack denies nothing that was asked about."""


def unknown_thing(low: str) -> tuple[int, int] | None:
    """Return the span of an answer that only denies things outside the vocabulary ("There is no hip prosthesis.").

    Each is named by two or more words, one of them unknown.
    """
    match = _ABSENT.fullmatch(low)
    if match is None:
        return None
    things = re.split(r",? (?:and|or) (?:no )?|, (?:no )?", match["things"])
    if any(_OF_ANSWERS.search(thing) or not unknown(thing) for thing in things):
        return None
    return match.span("things")


def denied(passage: Passage) -> str:
    """Return a word that may deny the reading, or ""."""
    match = _DENIES.search(passage.part)
    return "" if match is None else f"denied {match[0]}"


def unused(passage: Passage) -> str:
    """Return a "no" in the relevant clauses that denies nothing named, or ""."""
    for denial in denials(passage.part):
        if passage.holds(passage.first + denial.start()):
            continue
        behind = passage.part[denial.end() : denial.end() + 60]
        if not (_NAMED.search(behind) or any(lexicon.mentions(section, behind) for section in lexicon.sections())):
            return f"denied {denial[0]}"
    return ""
