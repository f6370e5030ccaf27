"""Singular and plural of English nouns, with irregular words."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from medtest.core.files.paths import read_yaml

_LISTS: dict[str, Any] = read_yaml(Path(__file__).with_name("inflection.yaml"))
IRREGULAR: dict[str, str] = _LISTS.pop("irregular")
"""Irregular plurals by singular; they also apply to the last part of compounds (``policeman``)."""
_WORDS: dict[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in _LISTS.items()}
SAME, PLURAL_ONLY = _WORDS["same"], _WORDS["plural_only"]
"""Words whose plural equals the singular, and words without a singular."""
_ES = ("ses", "xes", "zes", "ches", "shes", "sses")


@cache
def plural(noun: str) -> str:
    """Return the plural of a noun; of several words, that of the last (``fire hydrants``)."""
    head, _, last = noun.rpartition(" ")
    return f"{head} {_plural(last)}" if head else _plural(last)


def _plural(word: str) -> str:
    if word in SAME or word in PLURAL_ONLY:
        return word
    if word in IRREGULAR:
        return IRREGULAR[word]
    for ending in _WORDS["compounding"]:
        if word.endswith(ending) and word not in ("human", "german", "roman", "shaman", "talisman"):
            return word[: -len(ending)] + IRREGULAR[ending]
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in _WORDS["oes"]:
        return word + "es"
    if word.endswith("y") and len(word) > 1 and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


_BACK = {many: base for base, many in IRREGULAR.items()}


@cache
def singular(noun: str) -> str:
    """Return the singular of a noun; a singular is returned unchanged."""
    if noun in ("swim trunks", "swimming trunks"):
        return noun
    head, _, last = noun.rpartition(" ")
    return f"{head} {_singular(last)}" if head else _singular(last)


def _singular(word: str) -> str:
    if word in SAME or word in PLURAL_ONLY or word in _WORDS["ends_in_s"] or len(word) < 3:
        return word
    if word in _BACK:
        return _BACK[word]
    for ending in _WORDS["compounding"]:
        if word.endswith(IRREGULAR[ending]) and word not in _WORDS["men"]:
            return word[: -len(IRREGULAR[ending])] + ending
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-1] if word[:-1] in _WORDS["ie"] else word[:-3] + "y"
    if word.endswith("oes") and word[:-2] in _WORDS["oes"]:
        return word[:-2]
    stem = word[:-1]
    if word.endswith(_ES):
        keeps_e = stem in _WORDS["keeps_e"] or _ends_with_e(stem)
        return stem if keeps_e else word[:-2]
    return stem


def _ends_with_e(stem: str) -> bool:
    """Return True if a word that ends in -se, -ze, -che keeps its e: compounds of words that do."""
    return any(
        stem.endswith(ending) for ending in ("house", "horse", "case", "nose", "rose", "vase", "cheese", "tease")
    )


def is_plural(word: str) -> bool:
    """Return True if a noun is a plural with a singular."""
    return singular(word) != word


@cache
def article(word: str) -> str:
    """Return ``a`` or ``an`` before a word, by its sound as far as its spelling shows it."""
    first = word.split(" ")[0].lower()
    if first.startswith(("uni", "use", "uti", "uten", "euro", "ewe", "one", "once", "u.s", "ufo", "ukulele")):
        return "an" if first.startswith(("unin", "unim")) else "a"
    if first.startswith(("hour", "honest", "honor", "heir", "8", "11", "18", "x-", "mp3")):
        return "an"
    return "an" if first[:1] in "aeiou" else "a"
