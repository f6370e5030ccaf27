"""Sentences, clauses and the scope of negations.

A negation extends to the right to the end of its clause, across lists ("no polyps, ulcers, or bleeding"), up to a comma
that starts an independent statement (", a polyp is seen"). It extends to the left over a verb ("the polyp is not
seen"). After W. W. Chapman et al., "A simple algorithm for identifying negated findings" (Journal of Biomedical
Informatics 34, 2001), whose list of phrases is not used here.
"""

from __future__ import annotations

import re
from functools import lru_cache

from medtest.language.questions.answers.lexicon.texts import texts

SENTENCE_END = re.compile(r"(?<!\d)[.!?\n]|\.(?!\d)|[!?\n]")
_TEXTS = texts(__file__)
_CLAUSE_END = re.compile(_TEXTS["clause_end"])
_NEGATOR = re.compile(_TEXTS["negator"])
_NOT_NEGATOR = re.compile(_TEXTS["not_negator"])
_OWN = re.compile(_TEXTS["own"])
_AFTER = re.compile(_TEXTS["after"])
_COLON_NO = re.compile(r"\A\s*[:=-]\s*(?:no|none|absent|not|negative)\b")
_SUCH_AS = re.compile(r"\b(?:such as|like|including|for (?:example|instance)|e g)\b")
"""Introduction of examples of what is denied, each of which may have an article."""
FAR = 90
"""Largest reach of a negation to the right, in characters."""


@lru_cache(maxsize=64)
def clauses(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of all clauses that are not blank."""
    return tuple(_parts(text, _CLAUSE_END))


def denials(low: str) -> list[re.Match[str]]:
    """Return every negation in a text, except those that deny nothing ("no doubt", "cannot be excluded")."""
    return [match for match in _NEGATOR.finditer(low) if not _NOT_NEGATOR.match(low, match.start())]


def negated(low: str, start: int, end: int) -> bool:
    """Return True if the word at a position is denied.

    Args:
        low: The text in lower case.
        start: First character of the word.
        end: End of the word.
    """
    first, last = _around(low, start)
    begin = max(first, start - 4 * FAR)
    left = low[begin:start]
    negations = denials(left)
    if negations:
        gap = left[negations[-1].end() :]
        if _SUCH_AS.search(gap) or (len(gap) <= FAR and not _OWN.search(gap)):
            bare_answer = re.fullmatch(
                r"\W*(?:no|nope|non|nein|n\u00e3o)(?:\s*[,;:.!]|\s+-\s).*", left[negations[-1].start() :], re.DOTALL
            )
            at_the_start = not low[first : begin + negations[-1].start()].strip()
            if not (bare_answer and at_the_start):
                return True
    right = low[end : min(last, end + FAR)]
    return bool(_AFTER.match(right) or _COLON_NO.match(right))


def _around(text: str, place: int) -> tuple[int, int]:
    for first, last in clauses(text):
        if first <= place < last:
            return first, last
    return 0, len(text)


def _parts(text: str, ends: re.Pattern[str]) -> list[tuple[int, int]]:
    parts: list[tuple[int, int]] = []
    start = 0
    for boundary in ends.finditer(text):
        parts.append((start, boundary.end() if boundary[0] in ".!?\n;" else boundary.start()))
        start = boundary.end() if boundary[0] in ".!?\n;" else boundary.start()
    parts.append((start, len(text)))
    return [(first, last) for first, last in parts if text[first:last].strip()]
