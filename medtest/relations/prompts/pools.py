"""Pools with one thing done to them: the arithmetic of the operators."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from medtest.core.scenes import Entity, Pool, Triple


def renamed(pool: Pool, index: int, name: str) -> Pool:
    """Return the pool with one entity of another class; its count, attributes and triples stay."""
    entities = [replace(one, name=name) if at == index else one for at, one in enumerate(pool.entities)]
    return replace(pool, entities=tuple(entities))


def only_held_by(pool: Pool, triple: int) -> tuple[int, ...]:
    """Return the entities of a triple that no other triple holds, ascending."""
    others = [one for at, one in enumerate(pool.triples) if at != triple]
    held = {end for one in others for end in (one.subject, one.object)}
    taken = pool.triples[triple]
    return tuple(sorted({taken.subject, taken.object} - held))


def without(pool: Pool, triple: int) -> Pool:
    """Return the pool without a triple and without the entities that no other triple holds."""
    gone = set(only_held_by(pool, triple))
    return _kept(pool, gone, [one for at, one in enumerate(pool.triples) if at != triple])


def _kept(pool: Pool, gone: Collection[int], triples: list[Triple]) -> Pool:
    kept = [at for at in range(len(pool.entities)) if at not in gone]
    at_new = {old: new for new, old in enumerate(kept)}
    return Pool(
        entities=tuple(pool.entities[at] for at in kept),
        triples=tuple(
            Triple(subject=at_new[one.subject], predicate=one.predicate, object=at_new[one.object]) for one in triples
        ),
    )


def with_one_more(pool: Pool, anchor: int, predicate: str, entity: Entity, *, is_subject: bool) -> Pool:
    """Return the pool with a new entity, the last, and one triple more, the last, between it and one that there was.

    Args:
        pool: The pool.
        anchor: Index of the entity that there was.
        predicate: Of the new triple.
        entity: The new one.
        is_subject: Whether the new entity is the triple's subject, else its object.
    """
    new = len(pool.entities)
    ends = (new, anchor) if is_subject else (anchor, new)
    triple = Triple(subject=ends[0], predicate=predicate, object=ends[1])
    return Pool(entities=(*pool.entities, entity), triples=(*pool.triples, triple))
