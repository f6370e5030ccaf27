"""Known words of prompts, and the known word that a misspelt one stands for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from medtest.language.captions.controlled.lexicon import known_noun, lexicon
from medtest.language.captions.controlled.prepositions import prepositional_words
from medtest.language.captions.inflection import IRREGULAR, plural, singular
from medtest.language.captions.vocabulary import vg150

WORDS = Path(__file__).with_name("words.txt")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST = 3
"""Shortest word that is corrected; shorter ones have too many neighbours."""
_CLEARLY = 4
"""Times by which the rank of the nearest word must be better than that of the next."""
_COMMON = 1_200
"""Rank up to which a word may be meant by one with two wrong letters."""
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
    known: dict[str, int] = {}
    for word in (*listed, *further):
        known.setdefault(word, len(known) + 1)
    for word in list(known):
        known.setdefault(plural(word), 2 * len(listed))
    return known


@cache
def is_known(word: str) -> bool:
    """Return True if a word, in lower case, is in a word list, or is a number or a form of a listed word."""
    if not word.isalpha():
        parts = [part for part in word.split("-") if part]
        return word.isdigit() or not any(part.isalpha() for part in parts) or all(map(is_known, parts))
    known = ranks()
    if word in _regular_plurals():
        return False
    return word in known or singular(word) in known or known_noun(word) or (word.endswith("ly") and word[:-2] in known)


@cache
def correction(word: str) -> str:
    """Return the known word or words that a misspelt word stands for; "" if none is near or several are.

    A neighbour differs by one letter left out, added, exchanged or swapped with the next, in words of seven letters or
    more by two. The more frequent neighbour is meant if it is far more frequent in captions.
    """
    if word in _JOINED:
        return _JOINED[word]
    if len(word) < _SHORTEST or not word.isalpha():
        return ""
    if word in _regular_plurals():
        return _regular_plurals()[word]
    near = _neighbours(word) & ranks().keys()
    if not near and len(word) >= 7:
        near = {second for first in _neighbours(word) for second in _neighbours(first)} & ranks().keys()
        near = {known for known in near if ranks()[known] <= _COMMON}
    near = {known for known in near if len(known) >= _SHORTEST and known[0] == word[0]} or near
    ordered = sorted(near, key=lambda known: ranks()[known])
    if not ordered or len(ordered[0]) < _SHORTEST:
        return ""
    clear = len(ordered) == 1 or ranks()[ordered[1]] >= _CLEARLY * ranks()[ordered[0]]
    return ordered[0] if clear and (len(word) > _SHORTEST or len(ordered) == 1) else ""


@cache
def _regular_plurals() -> Mapping[str, str]:
    """Return the irregular plurals by the plural that a writer could mean by rule ("leafs": "leaves")."""
    wrong = {one + "s": many for one, many in IRREGULAR.items() if one + "s" != many}
    return {word: many for word, many in wrong.items() if word not in ("dies", "lifes", "selfs", "halfs")}


@cache
def _neighbours(word: str) -> frozenset[str]:
    halves = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    left_out = {head + tail[1:] for head, tail in halves if tail}
    swapped = {head + tail[1] + tail[0] + tail[2:] for head, tail in halves if len(tail) > 1}
    exchanged = {head + letter + tail[1:] for head, tail in halves if tail for letter in _LETTERS}
    added = {head + letter + tail for head, tail in halves for letter in _LETTERS}
    return frozenset(left_out | swapped | exchanged | added)
