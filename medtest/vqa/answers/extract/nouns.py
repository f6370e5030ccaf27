"""Numbers in words, the nouns that are counted, and numbers that count something else."""

from __future__ import annotations

import re

from medtest.vqa.answers.texts import texts

FINDINGS, POLYPS, INSTRUMENTS = 7, 8, 9
"""The counting questions (official ids)."""

_SAID: dict[int, str] = {
    0: "zero cero z\u00e9ro null \u96f6",
    1: "one single solitary eins uno una un ein eine einen une um uma \u4e00",
    2: "two pair couple dos zwei deux dois duas \u4e24 \u4e8c",
    3: "three tres drei trois tr\u00eas \u4e09",
    4: "four cuatro vier quatre quatro \u56db",
    5: "five cinco f\u00fcnf cinq \u4e94",
    6: "half_a_dozen half-a-dozen half-dozen six seis sechs \u516d",
    7: "seven siete sieben sept",
    8: "eight ocho acht huit",
    9: "nine nueve neun neuf",
    10: "ten diez zehn dix",
    11: "eleven",
    12: "a_dozen one_dozen dozen twelve",
    13: "thirteen",
    14: "fourteen",
    15: "fifteen",
    16: "sixteen",
    17: "seventeen",
    18: "eighteen",
    19: "nineteen",
    20: "twenty",
}
NUMERALS: dict[str, int] = {word.replace("_", " "): number for number, said in _SAID.items() for word in said.split()}
_TEXTS = texts(__file__)
OTHER_NUMBERS = re.compile(_TEXTS["other_numbers"])
THINGS: dict[int | None, str] = {
    POLYPS: r"(?:polyps?|p\u00f3lipos?|polypes?|polypen|polipos?|lesions?|growths?|adenomas?|excrescences?|protrusions?"
    r"|polypoid (?:lesions?|growths?|masses))",
    INSTRUMENTS: r"(?:instruments?|forceps|snares?|needles?|clips?|tubes?|tools?|catheters?|probes?|devices?"
    r"|instrumentos?|instrumente?n?|schlingen?|zangen?|pinzas?|asas?|agujas?|pinces?|anses?|aiguilles?)",
    FINDINGS: r"(?:findings?|abnormalit(?:y|ies)|lesions?|polyps?|ulcers?|erosions?|hemorrhoids?|mass(?:es)?"
    r"|hallazgos?|befunde?)",
    None: r"\w+",
}
NOT_POLYPS = _TEXTS["not_polyps"]
