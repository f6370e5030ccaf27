"""Tokenization of captions: lower case, no accents, expanded contractions, separate punctuation."""

from __future__ import annotations

import re
import unicodedata

_JOINED = re.compile(r"(?<=[a-z])\.(?=[a-z]{2,})")
_TRIPLED = re.compile(r"([a-z])\1{2,}")
_WORD = re.compile(r"[a-z0-9]+(?:[-'/][a-z0-9]+)*'?|[.,;:!?&()\"]")
_STOPS = frozenset(".!?;:")
_UNDONE = {
    "it's": ("it", "is"),
    "that's": ("that", "is"),
    "there's": ("there", "is"),
    "who's": ("who", "is"),
    "what's": ("what", "is"),
    "he's": ("he", "is"),
    "she's": ("she", "is"),
    "they're": ("they", "are"),
    "isn't": ("is", "not"),
    "aren't": ("are", "not"),
    "can't": ("can", "not"),
    "don't": ("do", "not"),
    "doesn't": ("does", "not"),
    "won't": ("will", "not"),
}
_SPELLING = {
    "close - up": "close-up",
    "close up": "close-up",
    "closeup": "close-up",
    "t shirt": "t-shirt",
    "t - shirt": "t-shirt",
    "in to": "into",
    "holding on to": "holding onto",
    "holds on to": "holds onto",
    "on to": "onto",
    "back ground": "background",
    "fore ground": "foreground",
    "mid air": "mid-air",
    "an other": "another",
    "a cross": "across",
    "along side": "alongside",
    "a top": "atop",
    "sitting atop": "sitting on",
    "sits atop": "sits on",
    "each others": "each other",
    "couplee": "couple",
    "w/": "with",
    "w": "with",
    "thru": "through",
    "nite": "night",
}
STOP = "."
_BEFORE_IT_IS = frozenset((STOP, ",", "that", "because", "so", "as", "like", "while", "and", "but", "when"))


def plain(text: str) -> str:
    """Return a text without accents and with compatibility characters expanded: "café" is "cafe"."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


def words(text: str) -> list[str]:
    """Return the words of a caption; the end of a sentence is ``"."``, a possessive is a separate ``"'s"``."""
    lowered = plain(text).lower().replace("\u2019", "'").replace("\u2018", "'").replace("`", "'").replace("\n", " . ")
    lowered = _TRIPLED.sub(r"\1\1", _JOINED.sub(" . ", lowered))
    for wrong, right in _SPELLING.items():
        if wrong in lowered:
            lowered = re.sub(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])", right, lowered)
    result: list[str] = []
    for chunk in _WORD.findall(lowered):
        if chunk == "it's" and result and result[-1] not in _BEFORE_IT_IS:
            result.append("its")  # a frequent misspelling of "its"
        elif chunk in _UNDONE:
            result += _UNDONE[chunk]
        elif chunk.endswith("'s") and len(chunk) > 2:
            result += [chunk[:-2], "'s"]
        elif chunk.endswith("s'"):
            result += [chunk[:-1], "'s"]
        elif chunk in _STOPS:
            result.append(STOP)
        elif chunk in '()"':
            if chunk != '"':
                result.append(",")
        else:
            result.append(chunk.strip("'"))
    return result
