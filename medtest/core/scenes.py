"""What a prompt says and what a picture shows: entities, relations between them, attributes and counts.

A *pool* (ACTesting, section 3.1: entity-relation pool) is what a prompt says, a *scene* is what a reader saw in a
picture. Both name classes in lower case and singular; which words a prompt uses for a class is the prompt's.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
NamedTriple: TypeAlias = tuple[str, str, str]
"""Name of the subject, predicate, name of the object."""
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom as fractions of the picture's width and height, from its upper left corner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A thing or place that a prompt names.

    Attributes:
        name: Its class.
        count: How many; None where the prompt does not say ("dogs", "several dogs", "grass").
        attributes: What it is like ("red", "wooden"), in alphabetical order.
    """

    name: str
    count: int | None = 1
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Triple:
    """A relation that is said of two entities.

    Attributes:
        subject: Index of an entity.
        predicate: One of Visual Genome's 50 predicates, ``left of``, ``right of``, or another verb.
        object: Index of an entity.
    """

    subject: int
    predicate: str
    object: int


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The entity-relation pool of a prompt.

    Attributes:
        entities: In the order in which they are named.
        triples: Relations between them, in the order in which they are said.
    """

    entities: tuple[Entity, ...] = ()
    triples: tuple[Triple, ...] = ()

    def named(self) -> tuple[NamedTriple, ...]:
        """Return the triples by the names of their entities."""
        names = [entity.name for entity in self.entities]
        return tuple((names[one.subject], one.predicate, names[one.object]) for one in self.triples)

    def names(self) -> Counter[str]:
        """Return how often each class is named, as many times as its count says; once where there is no count."""
        total: Counter[str] = Counter()
        for entity in self.entities:
            total[entity.name] += 1 if entity.count is None else entity.count
        return total

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values: ``{"entities": [[name, count, [attribute, …]]], "triples": [[0, "on", 1]]}``."""
        return {
            "entities": [[one.name, one.count, list(one.attributes)] for one in self.entities],
            "triples": [[one.subject, one.predicate, one.object] for one in self.triples],
        }

    @classmethod
    def of_json(cls, value: Any) -> Pool:
        """Return what :meth:`as_json` gave.

        Raises:
            ValueError: It is something else.
        """
        try:
            entities = tuple(
                Entity(name=str(name), count=None if count is None else int(count), attributes=tuple(map(str, said)))
                for name, count, said in value["entities"]
            )
            triples = tuple(
                Triple(subject=int(a), predicate=str(predicate), object=int(b)) for a, predicate, b in value["triples"]
            )
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"no pool of entities and triples ({error})") from None
        if any(not 0 <= end < len(entities) for one in triples for end in (one.subject, one.object)):
            raise ValueError("a triple names an entity that the pool does not have")
        return cls(entities=entities, triples=triples)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What a text-to-image system is asked: words, and what they say.

    Attributes:
        text: The words.
        pool: What they say.
    """

    text: str
    pool: Pool = field(default_factory=Pool)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of words and pool, in hexadecimal."""
        return hashlib.sha256(dumped([self.text, self.pool.as_json()]).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEntity:
    """An entity that a reader saw in a picture; a thing seen three times is three of them.

    Attributes:
        name: Its class.
        box: Where it is; None where the reader does not say.
        score: How sure the reader is, 0 to 1.
        attributes: What it is like, in alphabetical order.
    """

    name: str
    box: Box | None = None
    score: float = 1.0
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tells:
    """What a reader can tell of a picture; what lies outside is neither there nor missing.

    Attributes:
        classes: Classes whose presence and absence it can tell; None for every class.
        predicates: The same of relations.
        attributes: The same of attributes; empty where it tells none.
        counts: Whether it can tell how many there are.
    """

    classes: frozenset[str] | None = None
    predicates: frozenset[str] | None = None
    attributes: frozenset[str] | None = None
    counts: bool = True

    def names(self, name: str) -> bool:
        """Say whether it can tell a class."""
        return self.classes is None or name in self.classes

    def relates(self, triple: NamedTriple) -> bool:
        """Say whether it can tell a relation, and both classes that it is between."""
        known = self.predicates is None or triple[1] in self.predicates
        return known and self.names(triple[0]) and self.names(triple[2])

    def describes(self, attribute: str) -> bool:
        """Say whether it can tell an attribute."""
        return self.attributes is None or attribute in self.attributes

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values; null stands for everything."""
        sets = {"classes": self.classes, "predicates": self.predicates, "attributes": self.attributes}
        return {**{name: None if one is None else sorted(one) for name, one in sets.items()}, "counts": self.counts}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Tells:
        """Return what :meth:`as_json` gave."""
        sets = {name: value.get(name) for name in ("classes", "predicates", "attributes")}
        told = {name: None if one is None else frozenset(map(str, one)) for name, one in sets.items()}
        return cls(**told, counts=bool(value.get("counts", True)))


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a reader saw in a picture.

    Attributes:
        entities: What it saw.
        triples: Relations between them, by index.
        tells: What it can tell at all.
    """

    entities: tuple[SeenEntity, ...] = ()
    triples: tuple[Triple, ...] = ()
    tells: Tells = Tells()

    def named(self) -> tuple[NamedTriple, ...]:
        """Return the triples by the names of their entities."""
        names = [entity.name for entity in self.entities]
        return tuple((names[one.subject], one.predicate, names[one.object]) for one in self.triples)

    def names(self) -> Counter[str]:
        """Return how often each class was seen."""
        return Counter(entity.name for entity in self.entities)

    def as_json(self) -> dict[str, Any]:
        """Return entities and triples as JSON values, without what it tells: ``[name, box, score, [attribute, …]]``."""
        return {
            "entities": [
                [one.name, None if one.box is None else [round(v, 4) for v in one.box], round(one.score, 4)]
                + [list(one.attributes)]
                for one in self.entities
            ],
            "triples": [[one.subject, one.predicate, one.object] for one in self.triples],
        }

    @classmethod
    def of_json(cls, value: Any, tells: Tells = Tells()) -> Scene:
        """Return what :meth:`as_json` gave.

        Raises:
            ValueError: It is something else.
        """
        try:
            entities = tuple(
                SeenEntity(
                    name=str(name),
                    box=None if box is None else (float(box[0]), float(box[1]), float(box[2]), float(box[3])),
                    score=float(score),
                    attributes=tuple(map(str, said)),
                )
                for name, box, score, said in value["entities"]
            )
            triples = tuple(
                Triple(subject=int(a), predicate=str(predicate), object=int(b)) for a, predicate, b in value["triples"]
            )
        except (TypeError, KeyError, ValueError, IndexError) as error:
            raise ValueError(f"no scene of entities and triples ({error})") from None
        if any(not 0 <= end < len(entities) for one in triples for end in (one.subject, one.object)):
            raise ValueError("a triple names an entity that the scene does not have")
        return cls(entities=entities, triples=triples, tells=tells)


def difference(before: Pool, after: Pool) -> dict[str, Any]:
    """Return what a change of the prompt did to its pool: the data of an effect of kind ``scene``.

    Args:
        before: The source's pool.
        after: The follow-up's.

    Returns:
        JSON values: ``pool`` (the follow-up's, as :meth:`Pool.as_json`); ``removed`` and ``added``, each with
        ``entities`` (names, a name as often as it was removed or added) and ``triples`` (named ones), as multisets.
        Where something of which no number was said went from a class of which every number is said now, ``removed``
        has ``uncounted`` too, those classes: how many went nobody has said.
    """
    names, named = (before.names(), after.names()), (Counter(before.named()), Counter(after.named()))
    vague = [{one.name for one in pool.entities if one.count is None} for pool in (before, after)]
    uncounted = sorted((vague[0] - vague[1]) & (names[0] - names[1]).keys() & names[1].keys())
    return {
        "pool": after.as_json(),
        "removed": {
            "entities": _listed(names[0] - names[1]),
            "triples": _triples(named[0] - named[1]),
            **({"uncounted": uncounted} if uncounted else {}),
        },
        "added": {"entities": _listed(names[1] - names[0]), "triples": _triples(named[1] - named[0])},
    }


def dumped(value: Any) -> str:
    """Return JSON values as records hold them: compact, in one order, letters of every script as they are."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _listed(names: Counter[str]) -> list[str]:
    return sorted(names.elements())


def _triples(named: Counter[NamedTriple]) -> list[list[str]]:
    return [list(one) for one in sorted(named.elements())]


def alphabetical(attributes: Iterable[str]) -> tuple[str, ...]:
    """Return attributes as entities hold them: each once, in alphabetical order."""
    return tuple(sorted(set(attributes)))


def pool_of(entities: Sequence[Entity], triples: Iterable[tuple[int, str, int]] = ()) -> Pool:
    """Return a pool of entities and triples ``(subject, predicate, object)`` by index."""
    made = tuple(Triple(subject=a, predicate=predicate, object=b) for a, predicate, b in triples)
    return Pool(entities=tuple(entities), triples=made)
