"""Pools of what captions say, in classes: a word's class takes its place, and what has none may be left out."""

from __future__ import annotations

from typing import Literal, TypeAlias

from medtest.core.scenes import Entity, Pool, Triple
from medtest.language.captions.vocabulary import Vocabulary

Allowed: TypeAlias = Literal["any", "known", "vg150"]


def in_classes(pool: Pool, allowed: Allowed, known: Vocabulary) -> Pool:
    """Return a pool whose entities are classes where their words name one ("lady": ``woman``).

    Args:
        pool: As a parser read it, in the caption's words.
        allowed: Which entities stay: ``any``, ``known`` (of which there is a class), ``vg150`` (of Visual Genome's).
        known: The vocabulary.

    Returns:
        The pool; triples of entities that do not stay are gone with them, and so is "and", which relates nothing.
    """
    own = known.own_classes if allowed == "vg150" else frozenset()
    names = [known.class_of(entity.name) for entity in pool.entities]
    kept = [at for at, name in enumerate(names) if allowed == "any" or (name in own if allowed == "vg150" else name)]
    place = {old: new for new, old in enumerate(kept)}
    entities = []
    for at in kept:
        one = pool.entities[at]
        entities.append(Entity(name=names[at] or one.name, count=one.count, attributes=one.attributes))
    triples = tuple(
        Triple(
            subject=place[one.subject],
            predicate=known.merged_predicates.get(one.predicate, one.predicate),
            object=place[one.object],
        )
        for one in pool.triples
        if one.subject in place and one.object in place and one.predicate != "and"
    )
    return Pool(entities=tuple(entities), triples=triples)
