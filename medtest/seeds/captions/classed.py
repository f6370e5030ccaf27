"""Caption pools in terms of classes: words are replaced by their class, words without one may be dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from medtest.core.scenes import Absence, Entity, Pool, Triple
from medtest.language.captions.vocabulary import Vocabulary

Allowed: TypeAlias = Literal["any", "known", "vg150"]


def in_classes(pool: Pool, allowed: Allowed, vocabulary: Vocabulary) -> Pool:
    """Return a pool whose entities are replaced by their classes where one is known ("lady": ``woman``).

    Args:
        pool: The parsed pool, in the caption's words.
        allowed: Entities to keep: ``any``, ``known`` (with a class), ``vg150`` (with a class of Visual Genome's).
        vocabulary: The vocabulary.

    Returns:
        The pool, without triples of dropped entities and without "and", which states no relation.
    """
    own = vocabulary.own_classes if allowed == "vg150" else frozenset()
    names = [vocabulary.class_of(entity.name) for entity in pool.entities]
    indices = [at for at, name in enumerate(names) if allowed == "any" or (name in own if allowed == "vg150" else name)]
    place = {old: new for new, old in enumerate(indices)}
    entities = []
    for at in indices:
        original = pool.entities[at]
        entities.append(Entity(name=names[at] or original.name, count=original.count, attributes=original.attributes))
    triples = tuple(
        Triple(
            subject=place[triple.subject],
            predicate=vocabulary.merged_predicates.get(triple.predicate, triple.predicate),
            object=place[triple.object],
        )
        for triple in pool.triples
        if triple.subject in place and triple.object in place and triple.predicate != "and"
    )
    present = {entity.name for entity in entities}
    absent = {vocabulary.class_of(name) or name for name in pool.absent}
    return replace(
        pool,
        entities=tuple(entities),
        triples=triples,
        absent=tuple(sorted(absent - present)),
        denied=tuple(dict.fromkeys(_in_classes(absence, vocabulary) for absence in pool.denied)),
    )


def _in_classes(absence: Absence, vocabulary: Vocabulary) -> Absence:
    """Return an absence of a pool in terms of classes."""
    names = (0, 2) if len(absence) == 3 else (0,)
    return tuple(vocabulary.class_of(word) or word if at in names else word for at, word in enumerate(absence))
