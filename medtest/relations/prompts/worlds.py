"""What operators may put into a prompt: the classes there are, and the triples that are attested of them.

``photographs``: Visual Genome's 150 classes, and triples that captions of photographs say
(:attr:`medtest.language.captions.vocabulary.Vocabulary.attested_triples`); ACTesting too takes its candidates from the
data set (section 3.1, ER_A). ``drawn``: what made scenes show, any two of whose things may lie in any of their
relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import yaml

from medtest.core.scenes import NamedTriple, Pool
from medtest.language.captions.vocabulary import vg150

WorldName: TypeAlias = Literal["photographs", "drawn"]
ALIKE = Path(__file__).with_name("alike.yaml")


@dataclass(frozen=True, kw_only=True)
class World:
    """Classes and attested triples.

    Attributes:
        classes: What may be named anew, in alphabetical order.
        triples: Attested triples of them, in alphabetical order.
    """

    classes: tuple[str, ...]
    triples: tuple[NamedTriple, ...]

    @cached_property
    def attested(self) -> frozenset[NamedTriple]:
        """The triples as a set."""
        return frozenset(self.triples)

    @cached_property
    def subjects(self) -> dict[str, frozenset[str]]:
        """The classes of which a predicate is attested, by predicate."""
        return _by_predicate(self.triples, 0)

    @cached_property
    def objects(self) -> dict[str, frozenset[str]]:
        """The classes to which a predicate is attested, by predicate."""
        return _by_predicate(self.triples, 2)

    @cached_property
    def around(self) -> dict[str, tuple[NamedTriple, ...]]:
        """The attested triples in which a class stands, by class."""
        found: dict[str, list[NamedTriple]] = {}
        for one in self.triples:
            for name in dict.fromkeys((one[0], one[2])):
                found.setdefault(name, []).append(one)
        return {name: tuple(triples) for name, triples in found.items()}

    def among(self, names: Sequence[str]) -> World:
        """Return the world of some of its classes as what may be named anew; all of them where none is named."""
        return (
            self
            if not names
            else World(classes=tuple(one for one in self.classes if one in set(names)), triples=self.triples)
        )


@cache
def world_of(name: WorldName) -> World:
    """Return one of the worlds; it is made once."""
    return _photographs() if name == "photographs" else _drawn()


def _photographs() -> World:
    known = vg150()
    said = set(known.relations) - {"and"}
    triples = sorted(one for one in known.attested_triples if one[1] in said and one[0] != one[2])
    return World(classes=tuple(sorted(known.own_classes - parts())), triples=tuple(triples))


def _drawn() -> World:
    from medtest.phantoms.prompts import RELATIONS
    from medtest.phantoms.scenes import CLASSES

    classes = tuple(sorted(CLASSES))
    triples = sorted((a, said, b) for a in classes for b in classes for said in RELATIONS if a != b)
    return World(classes=classes, triples=tuple(triples))


def _by_predicate(triples: Iterable[NamedTriple], end: int) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for one in triples:
        found.setdefault(one[1], set()).add(one[end])
    return {predicate: frozenset(names) for predicate, names in found.items()}


# ------------------------------------------------------------------------------------------- what is one and the same


@cache
def _told(key: str) -> frozenset[str]:
    return frozenset(yaml.safe_load(ALIKE.read_text(encoding="utf-8"))[key])


@cache
def _alike() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(one) for one in yaml.safe_load(ALIKE.read_text(encoding="utf-8"))["alike"])


def postures() -> frozenset[str]:
    """Return the predicates of which a thing has one at a time (in, on, riding)."""
    return _told("postures")


@cache
def parts() -> frozenset[str]:
    """Return the classes that are parts of others (``alike.yaml``, and body and plant parts): none is put in anew."""
    known = vg150()
    kinds = ("body part", "plant part")
    return _told("parts") | {one for one in known.names if any(known.is_a(one, kind) for kind in kinds)}


@lru_cache(maxsize=1 << 16)
def related(one: str, other: str) -> bool:
    """Say whether a thing of one class may be one of another: the same word, a synonym, one a kind of the other, alike.

    Args:
        one: A class, or another noun.
        other: A class, or another noun.
    """
    (first, kinds), (second, others) = _kinds(one), _kinds(other)
    if first in others or second in kinds:
        return True
    return any(first in group and second in group for group in _alike())


@lru_cache(maxsize=1 << 14)
def _kinds(name: str) -> tuple[str, frozenset[str]]:
    """Return the class of a name, and it with all that it is a kind of."""
    known = vg150()
    own = known.class_of(name) or name
    found, waiting = {own}, [own]
    while waiting:
        fresh = [one for one in known.hypernyms(waiting.pop()) if one not in found]
        found.update(fresh)
        waiting += fresh
    return own, frozenset(found)


@lru_cache(maxsize=1 << 14)
def of_a_kind(one: str, other: str) -> bool:
    """Say whether two classes are kinds of the same thing (a horse and a dog are animals)."""
    known = vg150()
    return not set(known.hypernyms(one)).isdisjoint(known.hypernyms(other))


def unrelated(names: Iterable[str], pool: Pool) -> list[str]:
    """Return the classes of some that are related to none of a pool's."""
    there = {entity.name for entity in pool.entities}
    return [name for name in names if not any(related(name, one) for one in there)]
