"""Removal of wrapping from an answer: markdown, JSON, reasoning, "Final answer:".

Every step keeps the length of the text, so that positions remain valid in the original: irrelevant parts become spaces.
Lengths are bounded: a longer answer is cut, since the relevant part is near its beginning or after its last "answer:".
"""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.values.fields import Fields, answering
from medtest.language.questions.answers.values.readings import blanked, without

LISTED = "\u25aa"
"""Replacement of a bullet if points are counted."""

LONGEST = 20_000
"""Number of characters of an answer that are searched."""

MOST_TYPED = 4_000
"""Number of characters of the relevant part that are parsed."""

_SAME = str.maketrans(
    "\u2018\u2019\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212\u00d7\u00a0\u202f\uff0c\u3002\uff1a\uff1b\u2022\r\t*`#_|",
    "''\"\"------x  ,.:; \n     ,",
)
_WRITTEN_OUT = re.compile(r"\\(?:x[0-9a-f]{2}(?:\[[0-9;]{0,9}[A-Za-z])?|u[0-9a-f]{4}|U[0-9a-f]{8})")
"""Control characters as written out by :func:`medtest.api.redact.visible`; terminal colours as a whole."""
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
"""Abbreviations, whose period does not end a sentence."""
_POINT = re.compile(r"(?m)^[ ]*[-+*\u2022][ ]+(?=\S)")
_HEADING = re.compile(_TEXTS["heading"])
"""Heading that names the subject without a statement."""
_OPTION = re.compile(r"\A\s*\(?[a-f][).]\s+")


def lowered(text: str) -> str:
    """Return a text in lower case with equal length."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)


def plain(text: str, fields: Fields) -> str:
    """Return a text of equal length with only the part that answers the question, case kept.

    Args:
        text: The model's answer.
        fields: Layout of answers of the required kind in fields and lists.
    """
    masked = without(_WRITTEN_OUT, text[:LONGEST])
    masked = without(_THOUGHTS, masked)
    masked = _ticked(masked)
    if fields.points:
        masked = _POINT.sub(lambda match: LISTED.ljust(len(match[0])), masked)
    masked = without(_HEADING, masked)
    masked = answering(masked, fields)
    masked = masked.translate(_SAME)
    masked = _SHORT.sub(lambda match: match[0][:-1].replace(".", " ") + " ", masked)
    masked = _after_mark(masked)
    masked = without(_OPTION, masked)
    masked = _BULLET.sub(lambda match: "\n".ljust(len(match[0])) if "\n" in match[0] else " " * len(match[0]), masked)
    end = len(masked) - len(masked.lstrip()) + MOST_TYPED
    return blanked(masked, end, len(masked)) if end < len(masked) else masked


def _ticked(text: str) -> str:
    """Return a checklist with "no" in place of empty boxes; of check marks, only ticked lines."""
    any_ticked = _TICKED.search(text) is not None
    if not any_ticked and _UNTICKED.search(text) is None:
        return text
    masked = without(_TICKED, text)
    return "\n".join(_unticked(line, any_ticked) for line in masked.split("\n"))


def _unticked(line: str, any_ticked: bool) -> str:
    match = _UNTICKED.search(line)
    if match is None:
        return line
    if match["box"] is not None:
        return line[: match.start("box")] + "no".ljust(len(match["box"])) + line[match.end("box") :]
    return " " * len(line) if any_ticked else line.replace(match["sign"], " ")


def _after_mark(text: str) -> str:
    marks = [match for match in _MARK.finditer(lowered(text)) if text[match.end() :].strip()]
    return " " * marks[-1].end() + text[marks[-1].end() :] if marks else text
