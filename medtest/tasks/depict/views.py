"""Views of scenes, pools and changes for the rules, as sets and multisets of names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from medtest.core.scenes import SIDES, Absence, NamedAttribute, NamedTriple, Pool, Scene, Tells

SAME, EXCHANGE, REMOVAL, ADDITION = "same", "exchange", "removal", "addition"
EXCHANGE_REMOVAL, EXCHANGE_ADDITION = "exchange and removal", "exchange and addition"
SHAPES: tuple[str, ...] = (SAME, EXCHANGE, REMOVAL, ADDITION, EXCHANGE_REMOVAL, EXCHANGE_ADDITION)
"""Kinds of changes of a prompt, each with its metamorphic relation.

They are SS and repeats; EC (MR1); ER_R (MR2); ER_A (MR3); and EC combined with either of the latter two.
"""
_MOST_KEPT = 60_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SceneLook:
    """View of a scene for the rules.

    Attributes:
        names: Number of detected objects of each class.
        triples: Detected relations, by names.
        attributes: Number of objects of a class that were detected with an attribute.
        ranked: Classes by decreasing score.
        predicates: Predicates in the order of the scene, which is the reader's.
        tells: What the reader can detect.
        beliefs: Probability of yes, and of neither yes nor no, by kind and names of a question (:class:`Belief`).
    """

    names: Counter[str]
    triples: frozenset[NamedTriple]
    attributes: Counter[tuple[str, str]]
    ranked: tuple[str, ...]
    predicates: tuple[str, ...]
    tells: Tells
    beliefs: Mapping[tuple[str, ...], tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, scene: Scene) -> SceneLook:
        """Return the view of a scene."""
        by_score = sorted(scene.entities, key=lambda entity: -entity.score)
        return cls(
            names=scene.names(),
            triples=frozenset(scene.named()),
            attributes=Counter(
                (entity.name, attribute) for entity in scene.entities for attribute in entity.attributes
            ),
            ranked=tuple(entity.name for entity in by_score),
            predicates=tuple(triple.predicate for triple in scene.triples),
            tells=scene.tells,
            beliefs={(belief.kind, *belief.names): (belief.yes, belief.neither) for belief in scene.beliefs},
        )

    @classmethod
    def of_json(cls, value: Any, tells: Tells) -> SceneLook:
        """Return the view of a JSON value from :meth:`Scene.as_json`; tables call this a hundred thousand times.

        Raises:
            ValueError: The value is not a scene.
        """
        try:
            entities, triples = value["entities"], value["triples"]
            names = [str(name) for name, _, _, _ in entities]
            if any(a < 0 or b < 0 for a, _, b in triples):
                raise ValueError("a triple names an entity that the scene does not have")
            return cls(
                names=Counter(names),
                triples=frozenset((names[a], str(predicate), names[b]) for a, predicate, b in triples),
                attributes=Counter((name, str(attribute)) for name, _, _, all_ in entities for attribute in all_),
                ranked=tuple(str(entity[0]) for entity in sorted(entities, key=lambda entry: -float(entry[2]))),
                predicates=tuple(str(predicate) for _, predicate, _ in triples),
                tells=tells,
                beliefs={
                    (str(kind), *map(str, asked)): (float(yes), float(neither))
                    for kind, asked, yes, neither in value.get("beliefs", ())
                },
            )
        except (AttributeError, TypeError, KeyError, IndexError, ValueError) as error:
            raise ValueError(f"no scene of entities and triples ({error})") from None


def shown_with(look: SceneLook, prompt: Said, name: str, attribute: str) -> int:
    """Return the number of objects of a class that a picture shows with an attribute of its prompt.

    Where a prompt orders a class on both sides of the patient one by one, ``bilateral`` is both of them.
    """
    both = attribute in SIDES[:2] and all(prompt.attributes[name, side] for side in SIDES[:2])
    return look.attributes[name, attribute] + (
        prompt.attributes[name, attribute] * look.attributes[name, SIDES[2]] if both else 0
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Said:
    """View of a pool for the rules.

    Attributes:
        names: Number of stated objects of each class, one without a number.
        stated: Classes whose numbers are all stated.
        triples: Relations, by names.
        attributes: Number of objects of a class stated with an attribute.
        absent: Classes that must not be there.
        uncertain: Classes that may be there or not.
        denied: Attributes and relations that must not be there.
    """

    names: Counter[str]
    stated: frozenset[str]
    triples: Counter[NamedTriple]
    attributes: Counter[NamedAttribute]
    absent: frozenset[str] = frozenset()
    uncertain: frozenset[str] = frozenset()
    denied: tuple[Absence, ...] = ()

    @classmethod
    def of(cls, pool: Pool) -> Said:
        """Return the view of a pool."""
        vague = {entity.name for entity in pool.entities if entity.count is None}
        names = pool.names()
        return cls(
            names=names,
            stated=frozenset(names) - vague,
            triples=Counter(pool.named()),
            attributes=pool.attributes(),
            absent=frozenset(pool.absent),
            uncertain=frozenset(pool.uncertain),
            denied=pool.denied,
        )


def denied(after: SceneLook, prompt: Said) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the denials of a prompt that the reader can check, and whether the picture breaks them.

    Args:
        after: Scene of the picture.
        prompt: The prompt's pool.

    Yields:
        An attribute with its class, or a triple; and True if it was detected.
    """
    tells = after.tells
    for absence in prompt.denied:
        name = absence[0]
        if len(absence) == 2 and tells.names(name) and tells.describes(absence[1], name) and after.names[name]:
            yield (absence[1], name), after.attributes[name, absence[1]] > 0
        elif len(absence) == 3 and tells.relates(triple := (name, absence[1], absence[2])):
            yield absence, triple in after.triples


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolChange:
    """Effect of a relation on a prompt's pool, as multisets.

    Attributes:
        removed: Removed classes.
        added: Added classes.
        gone: Removed relations, by names.
        new: Added relations.
        uncounted: Classes of which objects without a number were removed and whose numbers are now all stated.
        lost: Attributes that classes of unchanged number no longer have.
        gained: Attributes that they have instead.
    """

    removed: Counter[str]
    added: Counter[str]
    gone: Counter[NamedTriple]
    new: Counter[NamedTriple]
    uncounted: frozenset[str] = frozenset()
    lost: Counter[NamedAttribute] = field(default_factory=Counter)
    gained: Counter[NamedAttribute] = field(default_factory=Counter)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> PoolChange:
        """Return the change in an effect's data (:func:`medtest.core.scenes.difference`); empty for no effect."""
        removed, added = data.get("removed") or {}, data.get("added") or {}
        return cls(
            removed=Counter(removed.get("entities", ())),
            added=Counter(added.get("entities", ())),
            gone=_triples(removed.get("triples", ())),
            new=_triples(added.get("triples", ())),
            uncounted=frozenset(removed.get("uncounted", ())),
            lost=_attributes(removed.get("attributes", ())),
            gained=_attributes(added.get("attributes", ())),
        )

    @cached_property
    def shape(self) -> str:
        """One of :data:`SHAPES`."""
        gone, new = self.gone.total(), self.new.total()
        if self.removed and self.added:
            return EXCHANGE if gone == new else EXCHANGE_REMOVAL if gone > new else EXCHANGE_ADDITION
        if self.removed or gone > new:
            return REMOVAL
        return ADDITION if self.added or new else SAME

    @cached_property
    def pairs(self) -> tuple[Sequence[tuple[NamedTriple, NamedTriple]], Counter[NamedTriple], Counter[NamedTriple]]:
        """Relations renamed by an exchange of classes (before, after), and other removed and added relations."""
        removed, new = self.gone.copy(), self.new.copy()
        renamed: list[tuple[NamedTriple, NamedTriple]] = []
        for subject, predicate, target in list(self.gone.elements()):
            renamed_triple = next((t for t in self._renamed(subject, predicate, target) if new[t] > 0), None)
            if renamed_triple is not None:
                renamed.append(((subject, predicate, target), renamed_triple))
                removed[subject, predicate, target] -= 1
                new[renamed_triple] -= 1
        return renamed, +removed, +new

    @cached_property
    def predicates(self) -> frozenset[str]:
        """Predicates that the prompt states more or less often than before, ignoring names."""
        removed = Counter(predicate for _, predicate, _ in self.gone.elements())
        added = Counter(predicate for _, predicate, _ in self.new.elements())
        return frozenset(removed - added) | frozenset(added - removed)

    def _renamed(self, subject: str, predicate: str, two: str) -> Iterable[NamedTriple]:
        ends = [[name, *(sorted(self.added) if name in self.removed else ())] for name in (subject, two)]
        yield from ((a, predicate, b) for a in ends[0] for b in ends[1] if (a, b) != (subject, two))


def _triples(triples: Iterable[Iterable[str]]) -> Counter[NamedTriple]:
    return Counter((str(subject), str(predicate), str(two)) for subject, predicate, two in triples)


def _attributes(pairs: Iterable[Iterable[str]]) -> Counter[NamedAttribute]:
    return Counter((str(name), str(attribute)) for name, attribute in pairs)


NO_CHANGE = PoolChange.of({})


@lru_cache(maxsize=_MOST_KEPT)
def look_of(scene: str, tells: str) -> SceneLook:
    """Return the view of a scene from the texts of a record.

    Raises:
        ValueError: The texts are not a scene.
    """
    return SceneLook.of_json(json.loads(scene), _tells(tells))


@lru_cache(maxsize=64)
def _tells(text: str) -> Tells:
    return Tells.of_json(json.loads(text)) if text else Tells()


@lru_cache(maxsize=_MOST_KEPT)
def said_of(pool: str) -> Said:
    """Return the view of a pool from the text of a record.

    Raises:
        ValueError: The text is not a pool.
    """
    return Said.of(Pool.of_json(json.loads(pool)))


@lru_cache(maxsize=_MOST_KEPT)
def change_of(effect: str) -> PoolChange:
    """Return the change from the text of an effect in a record; no change for an empty text."""
    return PoolChange.of(json.loads(effect)) if effect else NO_CHANGE
