"""Number words, counted nouns, and numbers of other things."""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon.texts import table, texts

FINDINGS, POLYPS, INSTRUMENTS = 7, 8, 9
"""Counting questions (official ids)."""

NUMERALS: dict[str, int] = {
    word.replace("_", " "): number
    for number, numerals in table(__file__, "numerals").items()
    for word in numerals.split()
}
_TEXTS = texts(__file__)
OTHER_NUMBERS = re.compile(_TEXTS["other_numbers"])
THINGS: dict[int | None, str] = {
    POLYPS: _TEXTS["things_polyps"],
    INSTRUMENTS: _TEXTS["things_instruments"],
    FINDINGS: _TEXTS["things_findings"],
    None: r"\w+",
}
NOT_POLYPS = _TEXTS["not_polyps"]
