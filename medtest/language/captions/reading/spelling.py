"""Known words of prompts, and corrections of misspelt ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from medtest.language.captions.controlled.lexicon import ed, ing, known_noun, lexicon
from medtest.language.captions.controlled.prepositions import prepositional_words
from medtest.language.captions.inflection import IRREGULAR, plural, singular
from medtest.language.captions.reading.content import content
from medtest.language.captions.vocabulary import vg150

WORDS = Path(__file__).with_name("words.txt")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST = 3
"""Shortest word that is corrected; shorter ones have too many neighbours."""
_CLEARLY = 4
"""Times by which the rank of the nearest word must be better than that of the next."""
_COMMON = 1_000
"""Rank up to which a word may be meant by a misspelt one; of rarer words, the misspelt one may be a word itself."""
_JOINED: Mapping[str, str] = {
    **dict.fromkeys(("infront", "infrontof"), "in front"),
    "ontop": "on top",
    "alot": "a lot",
    "nextto": "next to",
}
"""Words that should be written apart."""


@cache
def ranks() -> Mapping[str, int]:
    """Return the known words with their ranks by frequency in captions, 1 for the most frequent."""
    lines = WORDS.read_text(encoding="utf-8").splitlines()
    listed = [word for line in lines if not line.startswith("#") for word in line.split()]
    lists = lexicon()
    further = [*lists.forms, *lists.numbers, *prepositional_words()]
    further += [word for phrase in lists.skip_phrases for word in phrase]
    further += [part for name in lists.lists for word in sorted(lists[name]) for part in word.split("_")]
    further += [part for name in vg150().names for word in vg150().synonyms(name) for part in word.split()]
    lists_of_content = ("adjectives", "beings", "uncounted", "materials", "clinical")
    further += sorted(frozenset().union(*(content()[name] for name in lists_of_content)))
    ranked: dict[str, int] = {}
    for word in (*listed, *further):
        ranked.setdefault(word, len(ranked) + 1)
    for word in list(ranked):
        ranked.setdefault(plural(word), 2 * len(listed))
    return ranked


@cache
def is_known(word: str) -> bool:
    """Return True if a word, in lower case, is in a word list, or is a number or a form of a listed word."""
    if not word.isalpha():
        parts = [part for part in word.split("-") if part]
        return word.isdigit() or not any(part.isalpha() for part in parts) or all(map(is_known, parts))
    ranked = ranks()
    if word in _regular_plurals():
        return False
    return word in ranked or singular(word) in ranked or known_noun(word) or _is_derived(word)


def _is_derived(word: str) -> bool:
    """Return True for a form of a known word: "browned", "dipping", "slowly"."""
    for ending in ("ing", "ed", "er", "ly", "ish", "less", "ful"):
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < _SHORTEST:
            continue
        doubled = stem[:-1] if stem[-1] == stem[-2] else stem
        for base in {stem, doubled, stem + "e"} & ranks().keys():
            if base not in lexicon()["copulas"] and word in _derived(base, ending):
                return True
    return False


def _derived(base: str, ending: str) -> tuple[str, ...]:
    if ending in ("ing", "ed"):
        return ing(base), ed(base)
    return (f"{ed(base)[:-1]}r",) if ending == "er" else (base + ending,)


@cache
def correction(word: str) -> str:
    """Return the correct spelling of a misspelt word, of one or several words; "" if none is near or several are.

    A neighbour differs by one letter left out, added, exchanged or swapped with the next, or by two in words of seven
    letters or more. The more frequent neighbour is meant if it is far more frequent in captions.
    """
    if word in _JOINED:
        return _JOINED[word]
    if len(word) < _SHORTEST or not word.isalpha():
        return ""
    if word in _regular_plurals():
        return _regular_plurals()[word]
    near = {candidate for candidate in _neighbours(word) & ranks().keys() if ranks()[candidate] <= _COMMON}
    if not near and not _neighbours(word) & ranks().keys() and len(word) >= 7:
        near = {
            candidate
            for candidate in _common()
            if abs(len(candidate) - len(word)) <= 2 and _distance(word, candidate) == 2
        }
    near = {candidate for candidate in near if len(candidate) >= _SHORTEST and candidate[0] == word[0]}
    near = {candidate for candidate in near if candidate.endswith("s") == word.endswith("s")} or near
    ordered = sorted(near, key=lambda candidate: ranks()[candidate])
    if not ordered or len(ordered[0]) < _SHORTEST:
        return ""
    clear = len(ordered) == 1 or ranks()[ordered[1]] >= _CLEARLY * ranks()[ordered[0]]
    return ordered[0] if clear and (len(word) > _SHORTEST or len(ordered) == 1) else ""


@cache
def _regular_plurals() -> Mapping[str, str]:
    """Return the irregular plurals by the plural that a writer could mean by rule ("leafs": "leaves")."""
    wrong = {singular_form + "s": many for singular_form, many in IRREGULAR.items() if singular_form + "s" != many}
    return {word: many for word, many in wrong.items() if word not in ("dies", "lifes", "selfs", "halfs")}


@cache
def _common() -> tuple[str, ...]:
    return tuple(word for word, rank in ranks().items() if rank <= _COMMON)


def _distance(word: str, other: str) -> int:
    """Return the number of letters left out, added, exchanged or swapped with the next between two words."""
    rows = [list(range(len(other) + 1))]
    for at, letter in enumerate(word, 1):
        row = [at]
        for to, sign in enumerate(other, 1):
            best = min(rows[-1][to] + 1, row[-1] + 1, rows[-1][to - 1] + (letter != sign))
            if at > 1 and to > 1 and letter == other[to - 2] and sign == word[at - 2]:
                best = min(best, rows[-2][to - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


@cache
def _neighbours(word: str) -> frozenset[str]:
    halves = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    left_out = {head + tail[1:] for head, tail in halves if tail}
    swapped = {head + tail[1] + tail[0] + tail[2:] for head, tail in halves if len(tail) > 1}
    exchanged = {head + letter + tail[1:] for head, tail in halves if tail for letter in _LETTERS}
    added = {head + letter + tail for head, tail in halves for letter in _LETTERS}
    return frozenset(left_out | swapped | exchanged | added)
