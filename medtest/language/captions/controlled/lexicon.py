"""Words of captions by function, from ``lexicon.yaml``, and the forms of verbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from medtest.core.files.paths import read_yaml
from medtest.language.captions.inflection import singular
from medtest.language.captions.vocabulary import vg150

FILE = Path(__file__).with_name("lexicon.yaml")
_VOWELS = "aeiou"
_DOUBLED = frozenset("bdgmnprtl")
_STRESSED_LAST = frozenset(("begin", "forget", "equip", "admit", "permit", "refer", "compel"))


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """Words by function.

    Attributes:
        lists: Lists of the file by name.
        numbers: Values of number words.
        forms: Verb forms that a word can be, with the base of each: ``VB`` base, ``VZ`` present or past tense, ``VG``
            -ing,
            ``VN`` past participle.
        skip_phrases: Phrases without content, as words, longest first.
        tables: Tables of the file by name.
        groups: Words used by single rules; they do not count as known words.
    """

    lists: Mapping[str, frozenset[str]]
    numbers: Mapping[str, int]
    forms: Mapping[str, Mapping[str, str]]
    skip_phrases: tuple[tuple[str, ...], ...]
    tables: Mapping[str, Mapping[str, Any]]
    groups: Mapping[str, frozenset[str]]

    def __getitem__(self, name: str) -> frozenset[str]:
        return self.lists[name]

    def verb(self, word: str) -> Mapping[str, str]:
        """Return the verb forms that a word can be, with the base of each; empty for other words."""
        return self.forms.get(word, {})


@cache
def lexicon() -> Lexicon:
    """Return the lexicon, cached."""
    content: dict[str, Any] = read_yaml(FILE)
    groups = {name: _listed(text) for name, text in content.pop("groups").items()}
    lists = {name: _listed(value) for name, value in content.items() if isinstance(value, str)}
    lists["compounds"] |= _compounds()
    forms: dict[str, dict[str, str]] = {}
    irregular = {}
    for entry in lists["irregular_verbs"]:
        base, past, participle = entry.split(":")
        irregular[base] = (past, participle)
    for base in lists["transitive"] | lists["intransitive"] | set(irregular):
        past, participle = irregular.get(base, (ed(base), ed(base)))
        for form, word in (("VZ", past), ("VN", participle), ("VB", base), ("VZ", third(base)), ("VG", ing(base))):
            forms.setdefault(word, {}).setdefault(form, base)
    return Lexicon(
        lists=lists,
        numbers={str(word): int(value) for word, value in content["numbers"].items()},
        forms=forms,
        skip_phrases=tuple(
            sorted((tuple(phrase.split()) for phrase in content["skip_phrases"]), key=len, reverse=True)
        ),
        tables={name: value for name, value in content.items() if isinstance(value, dict)},
        groups=groups,
    )


def _compounds() -> frozenset[str]:
    """Return the classes of two words, and their synonyms, which are nouns independent of their first word."""
    vocabulary = vg150()
    words = [word for name in vocabulary.names for word in vocabulary.synonyms(name)]
    forms = [*words, *map(vocabulary.plural, words)]
    return frozenset(form.replace(" ", "_") for form in forms if form.count(" ") == 1)


def _listed(text: str) -> frozenset[str]:
    return frozenset(word for word in text.split() if not word.endswith("_"))


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
    """Return the third person singular of a verb's present tense."""
    if base in ("have", "be"):
        return {"have": "has", "be": "is"}[base]
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ies"
    return base + "s"


def _doubles(base: str) -> bool:
    """Return True if the last consonant is doubled: after a single vowel that is the word's only or stressed one."""
    if len(base) < 3 or base[-1] not in _DOUBLED or base[-2] not in _VOWELS or base[-3] in _VOWELS.replace("u", ""):
        return False
    vowels = sum(letter in _VOWELS for letter in base)
    return vowels == 1 or base in _STRESSED_LAST or base in ("quit", "unwrap", "snowplow")


NOUN_LISTS = ("persons", "animals", "garments", "containers", "nouns", "mass", "ing_nouns", "places", "events")


@cache
def known_noun(word: str) -> bool:
    """Return True if a word or its singular is listed as a noun."""
    lists = lexicon()
    base = singular(word)
    return any(word in lists[name] or base in lists[name] for name in NOUN_LISTS) or vg150().class_of(word) is not None


@cache
def animate(name: str) -> bool:
    """Return True if a noun names persons or animals."""
    last = singular(name.rpartition(" ")[2])
    return last in lexicon()["persons"] or last in lexicon()["animals"]


@cache
def garment(name: str) -> bool:
    """Return True if a noun names something worn."""
    last = name.rpartition(" ")[2]
    return not {last, singular(last)}.isdisjoint(lexicon()["garments"]) or last in lexicon()["garment_heads"]


@cache
def place(name: str) -> bool:
    """Return True if a noun names a place, or furniture or a building at which things are."""
    return singular(name.rpartition(" ")[2]) in lexicon()["places"]


@cache
def mass(name: str) -> bool:
    """Return True if a noun is not countable."""
    return name.rpartition(" ")[2] in lexicon()["mass"]
