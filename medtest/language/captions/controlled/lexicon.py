"""The words of captions by what they do, from ``lexicon.yaml``, and the forms of verbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from medtest.language.captions.inflection import singular
from medtest.language.captions.vocabulary import vg150

FILE = Path(__file__).with_name("lexicon.yaml")
_VOWELS = "aeiou"
_DOUBLED = frozenset("bdgmnprtl")
_STRESSED_LAST = frozenset(("begin", "forget", "equip", "admit", "permit", "refer", "compel"))


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """Words by what they do.

    Attributes:
        lists: The lists of the file by name.
        numbers: Value of number words.
        forms: Which forms of verbs a word can be, with the base of each: ``VB`` base, ``VZ`` present or past tense,
            ``VG`` -ing, ``VN`` past participle.
        skip_phrases: Phrases that say nothing of things, as words, longest first.
    """

    lists: Mapping[str, frozenset[str]]
    numbers: Mapping[str, int]
    forms: Mapping[str, Mapping[str, str]]
    skip_phrases: tuple[tuple[str, ...], ...]

    def __getitem__(self, name: str) -> frozenset[str]:
        return self.lists[name]

    def verb(self, word: str) -> Mapping[str, str]:
        """Return the forms that a word can be, with the base of each; empty for no verb that is listed."""
        return self.forms.get(word, {})


@cache
def lexicon() -> Lexicon:
    """Return the lexicon; it is read once."""
    import yaml

    told: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    lists = {name: _listed(value) for name, value in told.items() if isinstance(value, str)}
    lists["compounds"] |= _compounds()
    forms: dict[str, dict[str, str]] = {}
    irregular = {}
    for one in lists["irregular_verbs"]:
        base, past, participle = one.split(":")
        irregular[base] = (past, participle)
    for base in lists["transitive"] | lists["intransitive"] | set(irregular):
        past, participle = irregular.get(base, (ed(base), ed(base)))
        for form, word in (("VZ", past), ("VN", participle), ("VB", base), ("VZ", third(base)), ("VG", ing(base))):
            forms.setdefault(word, {}).setdefault(form, base)
    return Lexicon(
        lists=lists,
        numbers={str(word): int(value) for word, value in told["numbers"].items()},
        forms=forms,
        skip_phrases=tuple(sorted((tuple(one.split()) for one in told["skip_phrases"]), key=len, reverse=True)),
    )


def _compounds() -> frozenset[str]:
    """Return the classes of two words, and their synonyms: nouns whatever their first word is alone."""
    known = vg150()
    words = [word for name in known.names for word in known.synonyms(name)]
    both = [*words, *map(known.plural, words)]
    return frozenset(one.replace(" ", "_") for one in both if one.count(" ") == 1)


def _listed(text: str) -> frozenset[str]:
    return frozenset(one for one in text.split() if not one.endswith("_"))


def ing(base: str) -> str:
    """Return the -ing form of a verb: ``ride``: ``riding``, ``sit``: ``sitting``."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "ye", "oe")) and base != "be":
        return base[:-1] + "ing"
    return base + (base[-1] if _doubles(base) else "") + "ing"


def ed(base: str) -> str:
    """Return the regular past of a verb."""
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    return base + (base[-1] if _doubles(base) else "") + "ed"


def third(base: str) -> str:
    """Return the third person of a verb's present tense."""
    if base in ("have", "be"):
        return {"have": "has", "be": "is"}[base]
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ies"
    return base + "s"


def _doubles(base: str) -> bool:
    """Say whether a last consonant is doubled: one after one vowel, where that vowel is the word's only or stressed."""
    if len(base) < 3 or base[-1] not in _DOUBLED or base[-2] not in _VOWELS or base[-3] in _VOWELS.replace("u", ""):
        return False
    vowels = sum(letter in _VOWELS for letter in base)
    return vowels == 1 or base in _STRESSED_LAST or base in ("quit", "unwrap", "snowplow")


NOUN_LISTS = ("persons", "animals", "garments", "containers", "nouns", "mass", "ing_nouns", "places", "events")


@cache
def known_noun(word: str) -> bool:
    """Say whether a word or its singular is listed as a noun."""
    told = lexicon()
    one = singular(word)
    return any(word in told[name] or one in told[name] for name in NOUN_LISTS) or vg150().class_of(word) is not None


@cache
def animate(name: str) -> bool:
    """Say whether a noun names persons or animals."""
    last = singular(name.rpartition(" ")[2])
    return last in lexicon()["persons"] or last in lexicon()["animals"]


@cache
def garment(name: str) -> bool:
    """Say whether a noun names what is worn."""
    last = name.rpartition(" ")[2]
    return not {last, singular(last)}.isdisjoint(lexicon()["garments"]) or last in lexicon()["garment_heads"]


@cache
def place(name: str) -> bool:
    """Say whether a noun names a place, or furniture and buildings that things are at."""
    return singular(name.rpartition(" ")[2]) in lexicon()["places"]


@cache
def mass(name: str) -> bool:
    """Say whether a noun is not counted."""
    return name.rpartition(" ")[2] in lexicon()["mass"]
