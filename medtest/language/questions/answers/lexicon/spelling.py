"""Correction of typing errors in words with values: transposed, doubled, missing or extra letters.

Only words of the lexicon and of places are corrected, and only if the correction is unique and keeps the first letter.
Replaced letters are not corrected: "interior" is not "inferior", a colonoscope not a colonoscopy.
"""

from __future__ import annotations

import re
from functools import cache

from medtest.language.questions.answers.lexicon import words as lexicon

SWAPPED = 5
"""Shortest word in which neighbours may be transposed, or a letter doubled or single."""
DROPPED = 7
"""Shortest word that may lack a letter or have an extra one; words of places may always lack one."""

_WORD = re.compile(r"[a-z]{3,24}")
_SHORTHAND: dict[str, str] = {
    **{
        f"{verb}nt": f"{verb}n't"
        for verb in ["do", "does", "did", "is", "are", "was", "were", "have", "has", "had", "could", "would", "should"]
    },
    "cant": "can't",
    "wont": "won't",
    "abt": "about",
    "approximatly": "approximately",
}
"""Abbreviations and common misspellings."""
_MOST = 400
"""Largest number of different words of an answer that are checked."""
_OTHERS = frozenset(
    ("upper", "lower", "bottom", "center", "centre", "central", "middle", "right", "polyp", "instrument", "landmark")
    + ("abnormality", "abnormalities", "finding", "lesion")
)


def mended(text: str, low: str) -> tuple[str, str, list[int] | None]:
    """Return a text with corrected errors, the same in lower case, and the original position of each character.

    Args:
        text: The text with its case.
        low: The same in lower case, of equal length.

    Returns:
        Both texts, and the position in ``text`` of every character and of the end; None if nothing was corrected.
    """
    slips = {word: correction for word in _words(low) if (correction := _meant(word)) is not None}
    if not slips:
        return text, low, None
    pieces: list[str] = []
    places: list[int] = []
    position = 0
    for match in _WORD.finditer(low):
        correction = slips.get(match[0])
        if correction is None or _inside_a_word(low, match.start(), match.end()):
            continue
        pieces += [text[position : match.start()], correction]
        places += range(position, match.start())
        places += [min(match.start() + number, match.end() - 1) for number in range(len(correction) - 1)]
        places.append(match.end() - 1)
        position = match.end()
    pieces.append(text[position:])
    places += range(position, len(text) + 1)
    corrected = "".join(pieces)
    return corrected, "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in corrected), places


def _words(low: str) -> list[str]:
    return list(dict.fromkeys(_WORD.findall(low)))[:_MOST]


def _inside_a_word(low: str, start: int, end: int) -> bool:
    return low[start - 1 : start].isalpha() or low[end : end + 1].isalpha()


@cache
def _known() -> frozenset[str]:
    single = {
        part
        for entries in lexicon.sections().values()
        for words in entries.values()
        for word in words
        for part in re.findall(r"[a-z]+", word)
        if word.isascii() and len(part) >= SWAPPED
    }
    return frozenset(single | _OTHERS)


@cache
def _slips() -> dict[str, str | None]:
    """Return every misspelling with its word; None if words of different meaning share it."""
    words_of: dict[str, str | None] = {}
    for word in sorted(_known()):
        for slip in _of(word) - _known():
            existing = words_of.get(slip, word)
            equivalent = existing is not None and (existing == word or _meanings(existing) == _meanings(word))
            words_of[slip] = word if equivalent else None
    return words_of


@cache
def _meanings(word: str) -> frozenset[str]:
    meanings = {
        f"{section}.{name}"
        for section, entries in lexicon.sections().items()
        for name, words in entries.items()
        if word in words
    }
    return frozenset(meanings or {word})


def _of(word: str) -> set[str]:
    inner = range(1, len(word))
    swapped = {
        word[:index] + word[index + 1] + word[index] + word[index + 2 :] for index in inner if index + 1 < len(word)
    }
    doubled = {word[:index] + word[index] + word[index:] for index in range(len(word))}
    single = {word[:index] + word[index + 1 :] for index in inner if word[index] == word[index - 1]}
    dropped = {word[:index] + word[index + 1 :] for index in inner if index + 1 < len(word)}
    if len(word) < DROPPED:
        return swapped | doubled | single | (dropped if word in _OTHERS else set())
    letters = "abcdefghijklmnopqrstuvwxyz"
    added = {word[:index] + letter + word[index:] for index in inner for letter in letters}
    return swapped | doubled | single | dropped | added


def _meant(word: str) -> str | None:
    if word in _SHORTHAND:
        return _SHORTHAND[word]
    if word in _known():
        return None
    for ending in ("", "s", "es"):
        stem = word.removesuffix(ending) if ending else word
        if stem != word and stem in _known():
            return None
    return _slips().get(word) or _plural(word)


def _plural(word: str) -> str | None:
    stem = _slips().get(word[:-1]) if word.endswith("s") else None
    return None if stem is None else f"{stem}s"
