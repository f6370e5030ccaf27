"""What rules look at: a scene, a pool and a change as sets and multisets of names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from medtest.core.scenes import NamedTriple, Pool, Scene, Tells

SAME, EXCHANGE, REMOVAL, ADDITION = "same", "exchange", "removal", "addition"
EXCHANGE_REMOVAL, EXCHANGE_ADDITION = "exchange and removal", "exchange and addition"
SHAPES: tuple[str, ...] = (SAME, EXCHANGE, REMOVAL, ADDITION, EXCHANGE_REMOVAL, EXCHANGE_ADDITION)
"""What a change of a prompt can be, and with it the metamorphic relation that is held against it: SS and asking again;
EC (MR1); ER_R (MR2); ER_A (MR3); and EC together with one of the latter two."""
_MOST_KEPT = 60_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SceneLook:
    """A scene as rules look at it.

    Attributes:
        names: How often each class was seen.
        triples: Relations that were seen, by names.
        attributes: How many things of a class were seen with an attribute.
        ranked: Classes, the surest first.
        predicates: Predicates in the order of the scene, which is the reader's.
        tells: What the reader can tell.
    """

    names: Counter[str]
    triples: frozenset[NamedTriple]
    attributes: Counter[tuple[str, str]]
    ranked: tuple[str, ...]
    predicates: tuple[str, ...]
    tells: Tells

    @classmethod
    def of(cls, scene: Scene) -> SceneLook:
        """Return a scene as rules look at it."""
        by_score = sorted(scene.entities, key=lambda one: -one.score)
        return cls(
            names=scene.names(),
            triples=frozenset(scene.named()),
            attributes=Counter((one.name, said) for one in scene.entities for said in one.attributes),
            ranked=tuple(one.name for one in by_score),
            predicates=tuple(one.predicate for one in scene.triples),
            tells=scene.tells,
        )

    @classmethod
    def of_json(cls, value: Any, tells: Tells) -> SceneLook:
        """Return the look of what :meth:`Scene.as_json` gave, which tables do a hundred thousand times.

        Raises:
            ValueError: It is no scene.
        """
        try:
            entities, triples = value["entities"], value["triples"]
            names = [str(name) for name, _, _, _ in entities]
            if any(a < 0 or b < 0 for a, _, b in triples):
                raise ValueError("a triple names an entity that the scene does not have")
            return cls(
                names=Counter(names),
                triples=frozenset((names[a], str(predicate), names[b]) for a, predicate, b in triples),
                attributes=Counter((name, str(said)) for name, _, _, all_ in entities for said in all_),
                ranked=tuple(str(one[0]) for one in sorted(entities, key=lambda one: -float(one[2]))),
                predicates=tuple(str(predicate) for _, predicate, _ in triples),
                tells=tells,
            )
        except (TypeError, KeyError, IndexError, ValueError) as error:
            raise ValueError(f"no scene of entities and triples ({error})") from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Said:
    """A pool as rules look at it.

    Attributes:
        names: How many of each class are said, one where no number is.
        stated: Classes of which every number is said.
        triples: Relations, by names.
        attributes: How many of a class are said to have an attribute.
    """

    names: Counter[str]
    stated: frozenset[str]
    triples: Counter[NamedTriple]
    attributes: Counter[tuple[str, str]]

    @classmethod
    def of(cls, pool: Pool) -> Said:
        """Return a pool as rules look at it."""
        attributes: Counter[tuple[str, str]] = Counter()
        for one in pool.entities:
            for attribute in one.attributes:
                attributes[one.name, attribute] += 1 if one.count is None else one.count
        vague = {one.name for one in pool.entities if one.count is None}
        names = pool.names()
        return cls(names=names, stated=frozenset(names) - vague, triples=Counter(pool.named()), attributes=attributes)


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolChange:
    """What a relation did to a prompt's pool, as multisets.

    Attributes:
        removed: Classes that went.
        added: Classes that came.
        gone: Relations that went, by names.
        new: Relations that came.
        uncounted: Classes of which went what had no number, and of which every number is said now.
    """

    removed: Counter[str]
    added: Counter[str]
    gone: Counter[NamedTriple]
    new: Counter[NamedTriple]
    uncounted: frozenset[str] = frozenset()

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> PoolChange:
        """Return a change of the data of an effect (:func:`medtest.core.scenes.difference`); empty for no effect."""
        removed, added = data.get("removed") or {}, data.get("added") or {}
        return cls(
            removed=Counter(removed.get("entities", ())),
            added=Counter(added.get("entities", ())),
            gone=_triples(removed.get("triples", ())),
            new=_triples(added.get("triples", ())),
            uncounted=frozenset(removed.get("uncounted", ())),
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
        """Relations that an exchange of classes renamed (before, after), and what else went and came."""
        gone, new = self.gone.copy(), self.new.copy()
        found: list[tuple[NamedTriple, NamedTriple]] = []
        for one, predicate, two in list(self.gone.elements()):
            after = next((t for t in self._renamed(one, predicate, two) if new[t] > 0), None)
            if after is not None:
                found.append(((one, predicate, two), after))
                gone[one, predicate, two] -= 1
                new[after] -= 1
        return found, +gone, +new

    @cached_property
    def predicates(self) -> frozenset[str]:
        """The predicates of which the prompt says more or less than before, names aside."""
        before = Counter(predicate for _, predicate, _ in self.gone.elements())
        after = Counter(predicate for _, predicate, _ in self.new.elements())
        return frozenset(before - after) | frozenset(after - before)

    def _renamed(self, one: str, predicate: str, two: str) -> Iterable[NamedTriple]:
        ends = [[name, *(sorted(self.added) if name in self.removed else ())] for name in (one, two)]
        yield from ((a, predicate, b) for a in ends[0] for b in ends[1] if (a, b) != (one, two))


def _triples(given: Iterable[Iterable[str]]) -> Counter[NamedTriple]:
    return Counter((str(one), str(predicate), str(two)) for one, predicate, two in given)


NO_CHANGE = PoolChange.of({})


@lru_cache(maxsize=_MOST_KEPT)
def look_of(scene: str, tells: str) -> SceneLook:
    """Return the look of a record's texts.

    Raises:
        ValueError: They are no scene.
    """
    return SceneLook.of_json(json.loads(scene), _tells(tells))


@lru_cache(maxsize=64)
def _tells(text: str) -> Tells:
    return Tells.of_json(json.loads(text)) if text else Tells()


@lru_cache(maxsize=_MOST_KEPT)
def said_of(pool: str) -> Said:
    """Return what a record's text of a pool says.

    Raises:
        ValueError: It is no pool.
    """
    return Said.of(Pool.of_json(json.loads(pool)))


@lru_cache(maxsize=_MOST_KEPT)
def change_of(effect: str) -> PoolChange:
    """Return the change of a record's text of an effect; none for an empty one."""
    return PoolChange.of(json.loads(effect)) if effect else NO_CHANGE
