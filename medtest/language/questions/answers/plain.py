"""An answer's text without its wrapping: markdown, JSON, thoughts before the answer, "Final answer:".

Every step keeps the length of the text, so that places in it stay places in the original: what does not count becomes
blanks. Lengths are bounded: a longer answer is cut, since what matters stands near its beginning or after its last
"answer:".
"""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.values.fields import Fields, answering
from medtest.language.questions.answers.values.readings import blanked, without

LISTED = "\u25aa"
"""What a bullet becomes where things are counted."""

LONGEST = 20_000
"""Characters of an answer that are looked through for its answer proper."""

MOST_TYPED = 4_000
"""Characters of the answer proper that are typed."""

_SAME = str.maketrans(
    "\u2018\u2019\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212\u00d7\u00a0\u202f\uff0c\u3002\uff1a\uff1b\u2022\r\t*`#_|",
    "''\"\"------x  ,.:; \n     ,",
)
_WRITTEN_OUT = re.compile(r"\\(?:x[0-9a-f]{2}(?:\[[0-9;]{0,9}[A-Za-z])?|u[0-9a-f]{4}|U[0-9a-f]{8})")
"""Signs that are none, as :func:`medtest.api.redact.visible` writes them out; colours of a terminal go whole."""
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TEXTS = texts(__file__)
_MARK = re.compile(_TEXTS["mark"])
_BULLET = re.compile(r"(?m)^[ ]*(?:[-+]\s|\(?[a-z]\)\s)")
_BOX_BEFORE = r"(?m)(?:^[ ]*(?:[-*+\u2022][ ]+|\d{1,2}[.)][ ]+)?)"
_TICKED = re.compile(_BOX_BEFORE + r"(?P<box>\[[xX\u2713\u2714]\])(?=[ ]+\S)|(?P<sign>[\u2611\u2705\u2714\u2713])")
_UNTICKED = re.compile(_BOX_BEFORE + r"(?P<box>\[ \])(?=[ ]+\S)|(?P<sign>[\u2610\u274c\u2717\u2718])")
_SHORT = re.compile(
    r"\b(?:approx|ca|circa|resp|vs|max|min|diam|e\.g|i\.e|z\.b|d\.h|aprox|env|p\.ej)(?P<point>\.)", re.IGNORECASE
)
"""Abbreviations, whose point ends no sentence."""
_POINT = re.compile(r"(?m)^[ ]*[-+*\u2022][ ]+(?=\S)")
_HEADING = re.compile(_TEXTS["heading"])
"""A heading that names what is asked about, and says nothing of it."""
_OPTION = re.compile(r"\A\s*\(?[a-f][).]\s+")


def lowered(text: str) -> str:
    """Return a text in lower case with as many characters."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def plain(text: str, fields: Fields) -> str:
    """Return as many characters with only what answers the question, case kept.

    Args:
        text: An answer as the model gave it.
        fields: How an answer of the kind that is asked for lies in fields and lists.
    """
    shown = without(_WRITTEN_OUT, text[:LONGEST])
    shown = without(_THOUGHTS, shown)
    shown = _ticked(shown)
    if fields.points:
        shown = _POINT.sub(lambda found: LISTED.ljust(len(found[0])), shown)
    shown = without(_HEADING, shown)
    shown = answering(shown, fields)
    shown = shown.translate(_SAME)
    shown = _SHORT.sub(lambda found: found[0][:-1].replace(".", " ") + " ", shown)
    shown = _after_mark(shown)
    shown = without(_OPTION, shown)
    shown = _BULLET.sub(lambda found: "\n".ljust(len(found[0])) if "\n" in found[0] else " " * len(found[0]), shown)
    end = len(shown) - len(shown.lstrip()) + MOST_TYPED
    return blanked(shown, end, len(shown)) if end < len(shown) else shown


def _ticked(text: str) -> str:
    """Return a list to be ticked off with "no" in place of empty boxes; of signs, only lines that are ticked."""
    some = _TICKED.search(text) is not None
    if not some and _UNTICKED.search(text) is None:
        return text
    shown = without(_TICKED, text)
    return "\n".join(_unticked(line, some) for line in shown.split("\n"))


def _unticked(line: str, some: bool) -> str:
    found = _UNTICKED.search(line)
    if found is None:
        return line
    if found["box"] is not None:
        return line[: found.start("box")] + "no".ljust(len(found["box"])) + line[found.end("box") :]
    return " " * len(line) if some else line.replace(found["sign"], " ")


def _after_mark(text: str) -> str:
    marks = [found for found in _MARK.finditer(lowered(text)) if text[found.end() :].strip()]
    return " " * marks[-1].end() + text[marks[-1].end() :] if marks else text
