"""Vocabulary of captions: Visual Genome's 150 classes and 50 predicates as data, with their words.

Three files hold it: ``vg150.yaml`` (the published split, with merged entries and the reasons), ``classes.yaml``
(synonyms, hypernyms, irregular plurals, and classes beyond the 150), ``attested.csv`` (frequencies of triples in
captions of photographs, from MS-COCO's captions, Creative Commons Attribution 4.0; built by
``scripts/attested_triples.py``).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from medtest.core.files.paths import read_yaml
from medtest.core.scenes import NamedTriple
from medtest.language.captions import inflection

SPLIT = Path(__file__).with_name("vg150.yaml")
CLASSES = Path(__file__).with_name("classes.yaml")
ATTESTED = Path(__file__).with_name("attested.csv")


@dataclass(frozen=True, kw_only=True)
class Noun:
    """Class in pools.

    Attributes:
        name: Name of the class, lower case and singular (words such as ``jeans`` have no singular).
        also: True synonyms.
        hypernyms: Hypernyms, nearest first.
        plural: Its plural.
        mass: True if it is not countable ("snow").
    """

    name: str
    also: tuple[str, ...] = ()
    hypernyms: tuple[str, ...] = ()
    plural: str = ""
    mass: bool = False


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Classes and predicates, with their words.

    Attributes:
        classes: Visual Genome's 150 classes, as published.
        predicates: Its 50 predicates, as published.
        merged_classes: Classes that duplicate another (``guy``: ``man``), with the name used in pools.
        merged_predicates: The same for predicates.
        further_predicates: medtest's additional predicates (``left of``, ``right of``).
        nouns: All classes in pools, by name: the 150 without merged ones, and additional ones.
        phrases: Predicates by phrase.
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
        """All classes in pools, in alphabetical order."""
        return tuple(sorted(self.nouns))

    @cached_property
    def own_classes(self) -> frozenset[str]:
        """Visual Genome's 150 classes by the names used in pools, merged ones once."""
        return frozenset(self.merged_classes.get(name, name) for name in self.classes)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """All predicates in pools, in alphabetical order: the 50 without merged ones, and additional ones."""
        distinct = [predicate for predicate in self.predicates if predicate not in self.merged_predicates]
        return tuple(sorted([*distinct, *self.further_predicates]))

    def class_of(self, word: str) -> str | None:
        """Return the class of a word: its lemma, a plural, or a synonym; None for other words."""
        normalized = " ".join(word.lower().split())
        return self._words.get(normalized) or self._words.get(inflection.singular(normalized))

    def synonyms(self, name: str) -> tuple[str, ...]:
        """Return the words for a class, its own name first; for an unknown name only itself."""
        noun = self._noun(name)
        return (name,) if noun is None else (noun.name, *noun.also)

    def hypernyms(self, name: str) -> tuple[str, ...]:
        """Return the hypernyms of a class, nearest first; empty if unknown."""
        noun = self._noun(name)
        return () if noun is None else noun.hypernyms

    def is_a(self, name: str, kind: str) -> bool:
        """Return True if a class equals another or is a direct or indirect kind of it."""
        return name == kind or any(hypernym == kind or self.is_a(hypernym, kind) for hypernym in self.hypernyms(name))

    def plural(self, word: str) -> str:
        """Return the plural of a class or another noun (``people``, ``fire hydrants``)."""
        noun = self.nouns.get(word)
        return noun.plural if noun is not None else inflection.plural(word)

    def counted(self, name: str) -> bool:
        """Return True if a class is countable; unknown nouns are."""
        noun = self._noun(name)
        return noun is None or not noun.mass

    def predicate_of(self, phrase: str) -> str | None:
        """Return the predicate of a phrase (``beside``: ``near``), or None."""
        return self.phrases.get(" ".join(phrase.lower().split()))

    @cached_property
    def attested_triples(self) -> Mapping[NamedTriple, int]:
        """Number of captions of photographs with a triple of classes, for frequent triples."""
        with ATTESTED.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            counts = {(row["subject"], row["predicate"], row["object"]): int(row["captions"]) for row in rows}
        return MappingProxyType(counts)

    def attested(self, subject: str, predicate: str, object: str) -> bool:
        """Return True if a triple occurs in captions of photographs; classes and predicates by any of their words."""
        ends = (self.class_of(subject), self.class_of(object))
        canonical = self.predicate_of(predicate)
        return None not in (*ends, canonical) and (ends[0], canonical, ends[1]) in self.attested_triples

    def _noun(self, name: str) -> Noun | None:
        noun = self.nouns.get(name)
        return noun if noun is not None else self.nouns.get(self.class_of(name) or "")

    @cached_property
    def _words(self) -> dict[str, str]:
        """The class of each word; names take precedence over plurals and synonyms."""
        classes = {name: name for name in self.nouns}
        for word, name in self.merged_classes.items():
            classes.setdefault(word, name)
        for name, noun in self.nouns.items():
            classes.setdefault(noun.plural, name)
        for name, noun in self.nouns.items():
            for word in noun.also:
                classes.setdefault(word, name)
                classes.setdefault(inflection.plural(word), name)
        return classes


@cache
def vg150() -> Vocabulary:
    """Return medtest's vocabulary, cached."""
    split = read_yaml(SPLIT)
    entries = read_yaml(CLASSES)
    phrases = {predicate: predicate for predicate in (*split["predicates"], *split["further_predicates"])}
    phrases |= split["merged_predicates"]
    for predicate, phrases_of in split["predicate_phrases"].items():
        for phrase in phrases_of:
            phrases.setdefault(phrase, predicate)
    return Vocabulary(
        classes=tuple(split["classes"].split()),
        predicates=tuple(split["predicates"]),
        merged_classes=MappingProxyType(split["merged_classes"]),
        merged_predicates=MappingProxyType(split["merged_predicates"]),
        further_predicates=tuple(split["further_predicates"]),
        nouns=MappingProxyType({name: _noun(name, entry) for name, entry in entries.items()}),
        phrases=MappingProxyType(phrases),
    )


def _noun(name: str, entry: Mapping[str, Any]) -> Noun:
    return Noun(
        name=name,
        also=tuple(entry.get("also", ())),
        hypernyms=tuple(entry.get("is", ())),
        plural=entry.get("plural") or inflection.plural(name),
        mass=bool(entry.get("mass", False)),
    )
