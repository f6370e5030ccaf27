"""Content of prompts and pictures: entities, relations between them, attributes and counts.

A *pool* (ACTesting, section 3.1: entity-relation pool) is the content of a prompt, a *scene* is what a reader detected
in a picture. Both name classes in lower case and singular; the prompt chooses its own words for a class.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
NamedTriple: TypeAlias = tuple[str, str, str]
"""Name of the subject, predicate, name of the object."""
Absence: TypeAlias = tuple[str, ...]
"""What a prompt denies, by names: (class,), (class, attribute), or (subject, predicate, object)."""
SIDES: Final = ("left", "right", "bilateral")
"""Attributes for the patient's sides of a finding; image right of a film is the patient's left."""
NamedAttribute: TypeAlias = tuple[str, str]
"""Name of an entity, attribute."""
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom as fractions of the picture's width and height, from its upper left corner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Thing or place named in a prompt.

    Attributes:
        name: Its class.
        count: Number of instances; None if the prompt does not specify it ("dogs", "several dogs", "grass").
        attributes: Its attributes ("red", "wooden"), in alphabetical order.
    """

    name: str
    count: int | None = 1
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Triple:
    """Relation between two entities.

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
    """Entity-relation pool of a prompt.

    Attributes:
        entities: Entities in the order of the prompt.
        triples: Relations between them, in the order of the prompt.
        absent: Classes that the prompt excludes ("no dog"), in alphabetical order; none is an entity.
        uncertain: Classes that may be in the picture or not ("possibly a dog"), in alphabetical order.
        denied: Attributes and relations that the prompt denies ("the car is not blue"): (class, attribute), or
            (subject, predicate, object).
    """

    entities: tuple[Entity, ...] = ()
    triples: tuple[Triple, ...] = ()
    absent: tuple[str, ...] = ()
    uncertain: tuple[str, ...] = ()
    denied: tuple[Absence, ...] = ()

    def named(self) -> tuple[NamedTriple, ...]:
        """Return the triples by the names of their entities."""
        names = [entity.name for entity in self.entities]
        return tuple((names[triple.subject], triple.predicate, names[triple.object]) for triple in self.triples)

    def names(self) -> Counter[str]:
        """Return the number of times each class is named: an entity's count, or one for an entity without a count."""
        total: Counter[str] = Counter()
        for entity in self.entities:
            total[entity.name] += 1 if entity.count is None else entity.count
        return total

    def attributes(self) -> Counter[NamedAttribute]:
        """Return the number of times each attribute of a class is named, counted as :meth:`names` counts classes."""
        total: Counter[NamedAttribute] = Counter()
        for entity in self.entities:
            for attribute in entity.attributes:
                total[entity.name, attribute] += 1 if entity.count is None else entity.count
        return total

    def as_json(self) -> dict[str, Any]:
        """Convert to JSON values: ``{"entities": [[name, count, [attribute, …]]], "triples": [[0, "on", 1]]}``.

        ``absent`` and ``uncertain`` are lists of classes, ``denied`` is one of lists of names; each is there only if it
        is not empty.
        """
        further = {
            "absent": list(self.absent),
            "uncertain": list(self.uncertain),
            "denied": [list(absence) for absence in self.denied],
        }
        return {
            "entities": [[entity.name, entity.count, list(entity.attributes)] for entity in self.entities],
            "triples": [[triple.subject, triple.predicate, triple.object] for triple in self.triples],
            **{name: listed for name, listed in further.items() if listed},
        }

    @classmethod
    def of_json(cls, value: Any) -> Pool:
        """Create a pool from the result of :meth:`as_json`.

        Raises:
            ValueError: The value has another form.
        """
        try:
            entities = tuple(
                Entity(
                    name=str(name), count=None if count is None else int(count), attributes=tuple(map(str, attributes))
                )
                for name, count, attributes in value["entities"]
            )
            triples = tuple(
                Triple(subject=int(a), predicate=str(predicate), object=int(b)) for a, predicate, b in value["triples"]
            )
            absent, uncertain = (tuple(map(str, value.get(name, ()))) for name in ("absent", "uncertain"))
            denied = tuple(tuple(map(str, absence)) for absence in value.get("denied", ()))
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise ValueError(f"no pool of entities and triples ({error})") from None
        if any(not 0 <= end < len(entities) for triple in triples for end in (triple.subject, triple.object)):
            raise ValueError("a triple names an entity that the pool does not have")
        if any(len(absence) not in (2, 3) for absence in denied):
            raise ValueError("a denial is neither of an attribute nor of a relation")
        return cls(entities=entities, triples=triples, absent=absent, uncertain=uncertain, denied=denied)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Prompt for a text-to-image system.

    Attributes:
        text: The words.
        pool: Their content.
        own: True if the words are their author's: an operator then changes one phrase of them alone.
    """

    text: str
    pool: Pool = field(default_factory=Pool)
    own: bool = False

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of words and pool, in hexadecimal."""
        return hashlib.sha256(dumped([self.text, self.pool.as_json()]).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEntity:
    """Entity that a reader detected in a picture; an object detected three times is three entities.

    Attributes:
        name: Its class.
        box: Its position; None if the reader does not locate it.
        score: The reader's confidence, 0 to 1.
        attributes: Its attributes, in alphabetical order.
    """

    name: str
    box: Box | None = None
    score: float = 1.0
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tells:
    """Capabilities of a reader; a class, relation or attribute outside them counts neither as present nor as missing.

    Attributes:
        classes: Classes whose presence and absence it detects; None for every class.
        predicates: Relations that it detects; None for every relation.
        attributes: Attributes that it detects; None for every attribute, empty for none.
        counts: True if it can count.
        unsided: Classes of which it cannot tell :data:`SIDES`, although it tells them of others.
    """

    classes: frozenset[str] | None = None
    predicates: frozenset[str] | None = None
    attributes: frozenset[str] | None = None
    counts: bool = True
    unsided: frozenset[str] = frozenset()

    def names(self, name: str) -> bool:
        """Return True if it can detect a class."""
        return self.classes is None or name in self.classes

    def relates(self, triple: NamedTriple) -> bool:
        """Return True if it can detect a relation and both of its classes."""
        detectable = self.predicates is None or triple[1] in self.predicates
        return detectable and self.names(triple[0]) and self.names(triple[2])

    def describes(self, attribute: str, name: str = "") -> bool:
        """Return True if it can detect an attribute, of a class if one is named."""
        confused = attribute in SIDES and name in self.unsided
        return not confused and (self.attributes is None or attribute in self.attributes)

    def as_json(self) -> dict[str, Any]:
        """Convert to JSON values; null means everything, and ``unsided`` is there only if it names any."""
        sets = {"classes": self.classes, "predicates": self.predicates, "attributes": self.attributes}
        return {
            **{name: None if names is None else sorted(names) for name, names in sets.items()},
            "counts": self.counts,
            **({"unsided": sorted(self.unsided)} if self.unsided else {}),
        }

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Tells:
        """Create an instance from the result of :meth:`as_json`."""
        sets = {name: value.get(name) for name in ("classes", "predicates", "attributes")}
        detectable = {name: None if names is None else frozenset(map(str, names)) for name, names in sets.items()}
        unsided = frozenset(map(str, value.get("unsided", ())))
        return cls(**detectable, counts=bool(value.get("counts", True)), unsided=unsided)


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """Probability with which a reader answers a question about a picture with yes.

    Attributes:
        names: What is asked for: a class; an attribute with its class; a class with its number; or a triple. Empty for
            the whole prompt.
        kind: ``entities``, ``attributes``, ``counts``, ``relations`` or ``prompt``.
        yes: Probability of yes among yes and no, 0 to 1.
        neither: Probability of any other answer.
    """

    kind: str
    names: tuple[str, ...]
    yes: float
    neither: float


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Content that a reader detected in a picture.

    Attributes:
        entities: Detected entities.
        triples: Relations between them, by index.
        tells: Capabilities of the reader.
        beliefs: Probabilities of its answers, if it tells any.
    """

    entities: tuple[SeenEntity, ...] = ()
    triples: tuple[Triple, ...] = ()
    tells: Tells = Tells()
    beliefs: tuple[Belief, ...] = ()

    def named(self) -> tuple[NamedTriple, ...]:
        """Return the triples by the names of their entities."""
        names = [entity.name for entity in self.entities]
        return tuple((names[triple.subject], triple.predicate, names[triple.object]) for triple in self.triples)

    def names(self) -> Counter[str]:
        """Return the number of detections of each class."""
        return Counter(entity.name for entity in self.entities)

    def as_json(self) -> dict[str, Any]:
        """Convert to JSON values, without ``tells``: entities as ``[name, box, score, [attribute, …]]``.

        ``beliefs`` are ``[kind, [name, …], yes, neither]``, and there only if there are any.
        """
        beliefs = [
            [belief.kind, list(belief.names), round(belief.yes, 6), round(belief.neither, 6)] for belief in self.beliefs
        ]
        return {
            "entities": [
                [entity.name, None if entity.box is None else [round(v, 4) for v in entity.box], round(entity.score, 4)]
                + [list(entity.attributes)]
                for entity in self.entities
            ],
            "triples": [[triple.subject, triple.predicate, triple.object] for triple in self.triples],
            **({"beliefs": beliefs} if beliefs else {}),
        }

    @classmethod
    def of_json(cls, value: Any, tells: Tells = Tells()) -> Scene:
        """Create a scene from the result of :meth:`as_json`.

        Raises:
            ValueError: The value has another form.
        """
        try:
            entities = tuple(
                SeenEntity(
                    name=str(name),
                    box=None if box is None else (float(box[0]), float(box[1]), float(box[2]), float(box[3])),
                    score=float(score),
                    attributes=tuple(map(str, attributes)),
                )
                for name, box, score, attributes in value["entities"]
            )
            triples = tuple(
                Triple(subject=int(a), predicate=str(predicate), object=int(b)) for a, predicate, b in value["triples"]
            )
            beliefs = tuple(
                Belief(kind=str(kind), names=tuple(map(str, names)), yes=float(yes), neither=float(neither))
                for kind, names, yes, neither in value.get("beliefs", ())
            )
        except (AttributeError, TypeError, KeyError, ValueError, IndexError) as error:
            raise ValueError(f"no scene of entities and triples ({error})") from None
        if any(not 0 <= end < len(entities) for triple in triples for end in (triple.subject, triple.object)):
            raise ValueError("a triple names an entity that the scene does not have")
        return cls(entities=entities, triples=triples, tells=tells, beliefs=beliefs)


def difference(before: Pool, after: Pool) -> dict[str, Any]:
    """Return the change between two pools: the data of an effect of kind ``scene``.

    Args:
        before: The source's pool.
        after: The follow-up's.

    Returns:
        JSON values: ``pool`` (the follow-up's, as :meth:`Pool.as_json`); ``removed`` and ``added``, each with
        ``entities`` (names, repeated as often as removed or added) and ``triples`` (by name), as multisets. If
        uncounted entities of a class disappeared and the class is now counted, ``removed`` also has ``uncounted`` with
        those classes, because the number removed is unknown. Classes that are named as often as before, with other
        attributes, are in ``attributes`` of both, as class and attribute.
    """
    names, triples = (before.names(), after.names()), (Counter(before.named()), Counter(after.named()))
    attributes = [
        Counter({key: count for key, count in pool.attributes().items() if names[0][key[0]] == names[1][key[0]]})
        for pool in (before, after)
    ]
    gone, new = (_sorted(attributes[k] - attributes[1 - k]) for k in (0, 1))
    uncounted_names = [{entity.name for entity in pool.entities if entity.count is None} for pool in (before, after)]
    uncounted = sorted((uncounted_names[0] - uncounted_names[1]) & (names[0] - names[1]).keys() & names[1].keys())
    return {
        "pool": after.as_json(),
        "removed": {
            "entities": _listed(names[0] - names[1]),
            "triples": _sorted(triples[0] - triples[1]),
            **({"uncounted": uncounted} if uncounted else {}),
            **({"attributes": gone} if gone else {}),
        },
        "added": {
            "entities": _listed(names[1] - names[0]),
            "triples": _sorted(triples[1] - triples[0]),
            **({"attributes": new} if new else {}),
        },
    }


def dumped(value: Any) -> str:
    """Serialise JSON values as in records: compact, sorted, with non-ASCII letters unescaped."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _listed(names: Counter[str]) -> list[str]:
    return sorted(names.elements())


def _sorted(names: Counter[NamedTriple] | Counter[NamedAttribute]) -> list[list[str]]:
    return [list(group) for group in sorted(names.elements())]


def alphabetical(attributes: Iterable[str]) -> tuple[str, ...]:
    """Return distinct attributes in alphabetical order, as entities hold them."""
    return tuple(sorted(set(attributes)))


def pool_of(entities: Sequence[Entity], triples: Iterable[tuple[int, str, int]] = ()) -> Pool:
    """Create a pool from entities and triples ``(subject, predicate, object)`` by index."""
    relations = tuple(Triple(subject=a, predicate=predicate, object=b) for a, predicate, b in triples)
    return Pool(entities=tuple(entities), triples=relations)
