"""Pool arithmetic of the operators: pools with a single change."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from medtest.core.scenes import Absence, Entity, Pool, Triple


def renamed(pool: Pool, index: int, name: str) -> Pool:
    """Return the pool with the class of one entity changed; its count, attributes and triples stay."""
    entities = [replace(entity, name=name) if at == index else entity for at, entity in enumerate(pool.entities)]
    old = pool.entities[index].name
    alone = sum(entity.name == old for entity in pool.entities) == 1
    denied = tuple(_renamed(absence, old, name) for absence in pool.denied) if alone else pool.denied
    return replace(pool, entities=tuple(entities), denied=denied)


def _renamed(absence: Absence, old: str, new: str) -> Absence:
    """Return an absence of a class for another class."""
    return tuple(new if at != 1 and word == old else word for at, word in enumerate(absence))


def only_held_by(pool: Pool, triple: int) -> tuple[int, ...]:
    """Return the entities held by this triple alone, ascending."""
    others = [other for at, other in enumerate(pool.triples) if at != triple]
    held = {end for other in others for end in (other.subject, other.object)}
    removed = pool.triples[triple]
    return tuple(sorted({removed.subject, removed.object} - held))


def without(pool: Pool, triple: int) -> Pool:
    """Return the pool without a triple and without the entities held by it alone."""
    gone = set(only_held_by(pool, triple))
    return _without_entities(pool, gone, [other for at, other in enumerate(pool.triples) if at != triple])


def _without_entities(pool: Pool, gone: Collection[int], triples: list[Triple]) -> Pool:
    indices = [at for at in range(len(pool.entities)) if at not in gone]
    names = {pool.entities[at].name for at in indices}
    at_new = {old: new for new, old in enumerate(indices)}
    return replace(
        pool,
        entities=tuple(pool.entities[at] for at in indices),
        triples=tuple(
            Triple(subject=at_new[triple.subject], predicate=triple.predicate, object=at_new[triple.object])
            for triple in triples
        ),
        denied=tuple(absence for absence in pool.denied if absence[0] in names),
    )


def with_one_more(pool: Pool, anchor: int, predicate: str, entity: Entity, *, is_subject: bool) -> Pool:
    """Return the pool with a new entity and a new triple, both last, that links it to an existing entity.

    Args:
        pool: The pool.
        anchor: Index of the existing entity.
        predicate: Predicate of the new triple.
        entity: The new entity.
        is_subject: Whether the new entity is the triple's subject, else its object.
    """
    new = len(pool.entities)
    ends = (new, anchor) if is_subject else (anchor, new)
    triple = Triple(subject=ends[0], predicate=predicate, object=ends[1])
    return replace(pool, entities=(*pool.entities, entity), triples=(*pool.triples, triple))
