"""Tokenization of captions: lower case, no accents, expanded contractions, separate punctuation."""

from __future__ import annotations

import re
import unicodedata

from medtest.language.captions.controlled.lexicon import lexicon

_JOINED = re.compile(r"(?<=[a-z])\.(?=[a-z]{2,})")
_TRIPLED = re.compile(r"([a-z])\1{2,}")
_WORD = re.compile(r"[a-z0-9]+(?:[-'/][a-z0-9]+)*'?|[.,;:!?&()\"]")
_STOPS = frozenset(".!?;:")
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
    tables = lexicon().tables
    for wrong, right in tables["spellings"].items():
        if wrong in lowered:
            lowered = re.sub(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])", right, lowered)
    result: list[str] = []
    for chunk in _WORD.findall(lowered):
        if chunk == "it's" and result and result[-1] not in _BEFORE_IT_IS:
            result.append("its")  # a frequent misspelling of "its"
        elif chunk in tables["contractions"]:
            result += tables["contractions"][chunk].split()
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
