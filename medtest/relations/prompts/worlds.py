"""Classes and attested triples that operators may insert into a prompt.

``photographs``: Visual Genome's 150 classes, and triples found in captions of photographs
(:attr:`medtest.language.captions.vocabulary.Vocabulary.attested_triples`); ACTesting also takes its candidates from the
data set (section 3.1, ER_A). ``drawn``: contents of drawn scenes, in which any two objects may have any of the
relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from medtest.core.files.paths import read_yaml
from medtest.core.scenes import NamedTriple, Pool
from medtest.language.captions.vocabulary import vg150

WorldName: TypeAlias = Literal["photographs", "drawn"]
ALIKE = Path(__file__).with_name("alike.yaml")


@dataclass(frozen=True, kw_only=True)
class World:
    """Classes and attested triples.

    Attributes:
        classes: Classes that may be introduced, in alphabetical order.
        triples: Attested triples, in alphabetical order.
        photographed: Whether the triples are those of captions of photographs.
    """

    classes: tuple[str, ...]
    triples: tuple[NamedTriple, ...]
    photographed: bool = False

    @cached_property
    def attested(self) -> frozenset[NamedTriple]:
        """The triples as a set."""
        return frozenset(self.triples)

    @cached_property
    def subjects(self) -> dict[str, frozenset[str]]:
        """Attested subjects by predicate."""
        return _by_predicate(self.triples, 0)

    @cached_property
    def objects(self) -> dict[str, frozenset[str]]:
        """Attested objects by predicate."""
        return _by_predicate(self.triples, 2)

    @cached_property
    def around(self) -> dict[str, tuple[NamedTriple, ...]]:
        """Attested triples by class of their subject or object."""
        by_class: dict[str, list[NamedTriple]] = {}
        for triple in self.triples:
            for name in dict.fromkeys((triple[0], triple[2])):
                by_class.setdefault(name, []).append(triple)
        return {name: tuple(triples) for name, triples in by_class.items()}

    def among(self, names: Sequence[str]) -> World:
        """Return the world restricted to some classes for introduction; unchanged if ``names`` is empty."""
        if not names:
            return self
        return replace(self, classes=tuple(name for name in self.classes if name in names))


@cache
def world_of(name: WorldName) -> World:
    """Return one of the worlds, cached."""
    if name == "drawn":
        return _drawn_world()
    vocabulary = vg150()
    predicates = set(vocabulary.relations) - {"and"}
    triples = sorted(
        triple for triple in vocabulary.attested_triples if triple[1] in predicates and triple[0] != triple[2]
    )
    classes = tuple(sorted(vocabulary.own_classes - parts()))
    return World(classes=classes, triples=tuple(triples), photographed=True)


def _drawn_world() -> World:
    from medtest.phantoms.prompts import RELATIONS
    from medtest.phantoms.scenes import CLASSES

    classes = tuple(sorted(CLASSES))
    triples = sorted((a, predicate, b) for a in classes for b in classes for predicate in RELATIONS if a != b)
    return World(classes=classes, triples=tuple(triples))


def _by_predicate(triples: Iterable[NamedTriple], end: int) -> dict[str, frozenset[str]]:
    names_by_predicate: dict[str, set[str]] = {}
    for triple in triples:
        names_by_predicate.setdefault(triple[1], set()).add(triple[end])
    return {predicate: frozenset(names) for predicate, names in names_by_predicate.items()}


# --------------------------------------------------------------------------------------------------- related classes


@cache
def _word_set(key: str) -> frozenset[str]:
    return frozenset(read_yaml(ALIKE)[key])


@cache
def _alike() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(group) for group in read_yaml(ALIKE)["alike"])


def postures() -> frozenset[str]:
    """Return the predicates of which an entity can have only one (in, on, riding)."""
    return _word_set("postures")


@cache
def parts() -> frozenset[str]:
    """Return the classes that are parts of others (``alike.yaml``, body and plant parts); none is introduced."""
    vocabulary = vg150()
    kinds = ("body part", "plant part")
    return _word_set("parts") | {
        name for name in vocabulary.names if any(vocabulary.is_a(name, kind) for kind in kinds)
    }


@lru_cache(maxsize=1 << 16)
def related(name: str, other: str) -> bool:
    """Return True if an object of one class may be one of another: same word, synonym, kind or look-alike.

    Args:
        name: A class, or another noun.
        other: A class, or another noun.
    """
    (first, kinds), (second, others) = _kinds(name), _kinds(other)
    if first in others or second in kinds:
        return True
    return any(first in group and second in group for group in _alike())


@lru_cache(maxsize=1 << 14)
def _kinds(name: str) -> tuple[str, frozenset[str]]:
    """Return the class of a name, and the set of it and all its superordinates."""
    vocabulary = vg150()
    own = vocabulary.class_of(name) or name
    closure, waiting = {own}, [own]
    while waiting:
        fresh = [name for name in vocabulary.hypernyms(waiting.pop()) if name not in closure]
        closure.update(fresh)
        waiting += fresh
    return own, frozenset(closure)


@lru_cache(maxsize=1 << 14)
def of_a_kind(name: str, other: str) -> bool:
    """Return True if two classes share a superordinate (a horse and a dog are animals)."""
    vocabulary = vg150()
    return not set(vocabulary.hypernyms(name)).isdisjoint(vocabulary.hypernyms(other))


def unrelated(names: Iterable[str], pool: Pool) -> list[str]:
    """Return the classes unrelated to all of a pool's, and to those that it denies."""
    present = {entity.name for entity in pool.entities}
    present |= {*pool.absent, *(name for absence in pool.denied for name in absence[::2])}
    return [name for name in names if not any(related(name, other) for other in present)]


def is_odd(old: str, new: str, attributes: Iterable[str]) -> bool:
    """Return True if a class of another size or age would read oddly for an entity: a horse on a wire, an old child.

    Args:
        old: Class of the entity.
        new: Class that replaces it.
        attributes: Attributes of the entity.
    """
    vocabulary = vg150()
    large, children, seats = _word_set("large"), _word_set("children"), _word_set("seats")
    if any(vocabulary.is_a(old, kind) for kind in ("animal", "plant")) and (old in large) is not (new in large):
        return True
    if (old in seats) is not (new in seats) and of_a_kind(old, new):
        return True
    if "old" in attributes or "elderly" in attributes:
        return new in children
    return "little" in attributes and old in children and new not in children
