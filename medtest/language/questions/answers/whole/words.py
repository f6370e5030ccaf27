"""Known words: those of ``vocabulary.txt`` and of the lexicon."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from medtest.language.questions.answers.lexicon import words as lexicon

FILE = Path(__file__).with_name("vocabulary.txt")
WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
QUOTED = re.compile(r"\"[^\"\n]{1,60}\"")

_ENDINGS = ("'s", "s", "es", "ly", "ed", "d", "ing")
_CHINESE = "\u2e80"


@cache
def _vocabulary() -> frozenset[str]:
    words = {
        part
        for entries in lexicon.sections().values()
        for synonyms in entries.values()
        for word in synonyms
        for part in WORD.findall(lexicon.folded(word.lower()))
    }
    return frozenset(FILE.read_text(encoding="utf-8").split()) | words


@cache
def _known(word: str) -> bool:
    vocabulary = _vocabulary()
    if len(word) == 1 or word in vocabulary:
        return True
    if "'" in word and all(_known(part) for part in word.split("'") if part):
        return True
    if word[0] > _CHINESE:
        return all(letter in vocabulary or letter < _CHINESE for letter in word)
    stems = [word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)]
    return any(stem in vocabulary or f"{stem}e" in vocabulary for stem in stems if len(stem) > 2)


def unknown(low: str) -> list[str]:
    """Return the unknown words of a text; single letters and quoted words are known."""
    return [word for word in WORD.findall(lexicon.folded(QUOTED.sub(" ", low))) if not _known(word)]
