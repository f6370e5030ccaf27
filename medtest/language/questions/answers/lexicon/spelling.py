"""Slips of the pen in words that values are read from: two letters changed about, one doubled, dropped or too many.

Only words of the lexicon and of places are mended, and only where one of them is meant and the first letter is right. A
letter in place of another is left alone: "interior" is not "inferior", a colonoscope no colonoscopy.
"""

from __future__ import annotations

import re
from functools import cache

from medtest.language.questions.answers.lexicon import words as lexicon

SWAPPED = 5
"""Letters of the shortest word in which two neighbours may have changed places, or one is doubled or single."""
DROPPED = 7
"""Letters of the shortest word that may lack a letter or have one too many; words of places may lack one anyhow."""

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
"""How words are written in haste."""
_MOST = 400
"""Different words of an answer that are looked at."""
_OTHERS = frozenset(
    ("upper", "lower", "bottom", "center", "centre", "central", "middle", "right", "polyp", "instrument", "landmark")
    + ("abnormality", "abnormalities", "finding", "lesion")
)


def mended(text: str, low: str) -> tuple[str, str, list[int] | None]:
    """Return a text with its slips mended, the same in lower case, and where each character stood before.

    Args:
        text: The text, case kept.
        low: The same in lower case, as many characters.

    Returns:
        Both texts, and the place in ``text`` of every character and of the end; None where nothing was mended.
    """
    slips = {word: meant for word in _words(low) if (meant := _meant(word)) is not None}
    if not slips:
        return text, low, None
    shown: list[str] = []
    places: list[int] = []
    done = 0
    for one in _WORD.finditer(low):
        meant = slips.get(one[0])
        if meant is None or _inside_a_word(low, one.start(), one.end()):
            continue
        shown += [text[done : one.start()], meant]
        places += range(done, one.start())
        places += [min(one.start() + number, one.end() - 1) for number in range(len(meant) - 1)]
        places.append(one.end() - 1)
        done = one.end()
    shown.append(text[done:])
    places += range(done, len(text) + 1)
    made = "".join(shown)
    return made, "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in made), places


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
    """Return every slip of every word with the word that is meant; None where two of different meaning are."""
    found: dict[str, str | None] = {}
    for word in sorted(_known()):
        for slip in _of(word) - _known():
            other = found.get(slip, word)
            same = other is not None and (other == word or _meanings(other) == _meanings(word))
            found[slip] = word if same else None
    return found


@cache
def _meanings(word: str) -> frozenset[str]:
    named = {
        f"{section}.{name}"
        for section, entries in lexicon.sections().items()
        for name, words in entries.items()
        if word in words
    }
    return frozenset(named or {word})


def _of(word: str) -> set[str]:
    inner = range(1, len(word))
    swapped = {word[:one] + word[one + 1] + word[one] + word[one + 2 :] for one in inner if one + 1 < len(word)}
    doubled = {word[:one] + word[one] + word[one:] for one in range(len(word))}
    single = {word[:one] + word[one + 1 :] for one in inner if word[one] == word[one - 1]}
    dropped = {word[:one] + word[one + 1 :] for one in inner if one + 1 < len(word)}
    if len(word) < DROPPED:
        return swapped | doubled | single | (dropped if word in _OTHERS else set())
    letters = "abcdefghijklmnopqrstuvwxyz"
    added = {word[:one] + letter + word[one:] for one in inner for letter in letters}
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
    meant = _slips().get(word[:-1]) if word.endswith("s") else None
    return None if meant is None else f"{meant}s"
