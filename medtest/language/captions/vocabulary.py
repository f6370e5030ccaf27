"""The vocabulary of captions: Visual Genome's 150 classes and 50 predicates as data, and the words for them.

Three files hold it: ``vg150.yaml`` (the split as published, what of it is merged and why), ``classes.yaml`` (synonyms,
hypernyms, irregular plurals, and classes beyond the 150), ``attested.csv`` (triples that captions of photographs say,
and how often, from MS-COCO's captions, Creative Commons Attribution 4.0; ``scripts/attested_triples.py`` makes it).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from medtest.core.scenes import NamedTriple
from medtest.language.captions import inflection

SPLIT = Path(__file__).with_name("vg150.yaml")
CLASSES = Path(__file__).with_name("classes.yaml")
ATTESTED = Path(__file__).with_name("attested.csv")


@dataclass(frozen=True, kw_only=True)
class Noun:
    """A class that pools name.

    Attributes:
        name: The class, lower case and singular (``jeans`` and its like have no singular).
        also: True synonyms: other words for the same things.
        hypernyms: What it is a kind of, nearest first.
        plural: Its plural.
        mass: Whether it is not counted ("snow").
    """

    name: str
    also: tuple[str, ...] = ()
    hypernyms: tuple[str, ...] = ()
    plural: str = ""
    mass: bool = False


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Classes and predicates, and the words for them.

    Attributes:
        classes: Visual Genome's 150, as published.
        predicates: Its 50, as published.
        merged_classes: Those of the 150 that are another once more (``guy``: ``man``), and the name that pools use.
        merged_predicates: The same of predicates.
        further_predicates: What medtest has beside the 50 (``left of``, ``right of``).
        nouns: All classes that pools name, by name: the 150 without those that are merged, and further ones.
        phrases: Ways of saying a predicate, by the phrase.
    """

    classes: tuple[str, ...]
    predicates: tuple[str, ...]
    merged_classes: Mapping[str, str]
    merged_predicates: Mapping[str, str]
    further_predicates: tuple[str, ...]
    nouns: Mapping[str, Noun]
    phrases: Mapping[str, str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All classes that pools name, in alphabetical order."""
        return tuple(sorted(self.nouns))

    @cached_property
    def further_classes(self) -> tuple[str, ...]:
        """The classes beyond Visual Genome's 150, in alphabetical order."""
        return tuple(one for one in self.names if one not in self.own_classes)

    @cached_property
    def own_classes(self) -> frozenset[str]:
        """Visual Genome's 150 by the names that pools use: those that are merged are one."""
        return frozenset(self.merged_classes.get(one, one) for one in self.classes)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """All predicates that pools name, in alphabetical order: the 50 without those merged, and further ones."""
        kept = [one for one in self.predicates if one not in self.merged_predicates]
        return tuple(sorted([*kept, *self.further_predicates]))

    def class_of(self, word: str) -> str | None:
        """Return the class that a word names: its lemma, a plural, a synonym; None for a word of no class."""
        said = " ".join(word.lower().split())
        return self._words.get(said) or self._words.get(inflection.singular(said))

    def synonyms(self, name: str) -> tuple[str, ...]:
        """Return the words for a class, its own name first; a name that is none has itself alone."""
        noun = self._noun(name)
        return (name,) if noun is None else (noun.name, *noun.also)

    def hypernyms(self, name: str) -> tuple[str, ...]:
        """Return what a class is a kind of, nearest first; empty where nothing is said."""
        noun = self._noun(name)
        return () if noun is None else noun.hypernyms

    def is_a(self, name: str, kind: str) -> bool:
        """Say whether a class is another or a kind of it, at any remove."""
        return name == kind or any(one == kind or self.is_a(one, kind) for one in self.hypernyms(name))

    def plural(self, word: str) -> str:
        """Return the plural of a class or another noun (``people``, ``fire hydrants``)."""
        noun = self.nouns.get(word)
        return noun.plural if noun is not None else inflection.plural(word)

    def counted(self, name: str) -> bool:
        """Say whether a class is counted; a noun of no class is."""
        noun = self._noun(name)
        return noun is None or not noun.mass

    def predicate_of(self, phrase: str) -> str | None:
        """Return the predicate that a phrase says (``beside``: ``near``); None for one of no predicate."""
        return self.phrases.get(" ".join(phrase.lower().split()))

    @cached_property
    def attested_triples(self) -> Mapping[NamedTriple, int]:
        """How often captions of photographs say a triple of classes, of those that they say often enough."""
        with ATTESTED.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            found = {(one["subject"], one["predicate"], one["object"]): int(one["captions"]) for one in rows}
        return MappingProxyType(found)

    def attested(self, subject: str, predicate: str, object: str) -> bool:
        """Say whether captions of photographs say a triple; classes and predicates by any word for them."""
        ends = (self.class_of(subject), self.class_of(object))
        said = self.predicate_of(predicate)
        return None not in (*ends, said) and (ends[0], said, ends[1]) in self.attested_triples

    def _noun(self, name: str) -> Noun | None:
        found = self.nouns.get(name)
        return found if found is not None else self.nouns.get(self.class_of(name) or "")

    @cached_property
    def _words(self) -> dict[str, str]:
        """Return the class of each word: names before plurals before synonyms where one word is two."""
        found = {name: name for name in self.nouns}
        for word, name in self.merged_classes.items():
            found.setdefault(word, name)
        for name, noun in self.nouns.items():
            found.setdefault(noun.plural, name)
        for name, noun in self.nouns.items():
            for word in noun.also:
                found.setdefault(word, name)
                found.setdefault(inflection.plural(word), name)
        return found


@cache
def vg150() -> Vocabulary:
    """Return the vocabulary that medtest ships; it is read once."""
    import yaml

    split = yaml.safe_load(SPLIT.read_text(encoding="utf-8"))
    listed = yaml.safe_load(CLASSES.read_text(encoding="utf-8"))
    phrases = {one: one for one in (*split["predicates"], *split["further_predicates"])}
    phrases |= split["merged_predicates"]
    for predicate, said in split["predicate_phrases"].items():
        for one in said:
            phrases.setdefault(one, predicate)
    return Vocabulary(
        classes=tuple(split["classes"].split()),
        predicates=tuple(split["predicates"]),
        merged_classes=MappingProxyType(split["merged_classes"]),
        merged_predicates=MappingProxyType(split["merged_predicates"]),
        further_predicates=tuple(split["further_predicates"]),
        nouns=MappingProxyType({name: _noun(name, told) for name, told in listed.items()}),
        phrases=MappingProxyType(phrases),
    )


def _noun(name: str, told: Mapping[str, Any]) -> Noun:
    return Noun(
        name=name,
        also=tuple(told.get("also", ())),
        hypernyms=tuple(told.get("is", ())),
        plural=told.get("plural") or inflection.plural(name),
        mass=bool(told.get("mass", False)),
    )
