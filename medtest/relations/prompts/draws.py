"""Draws of classes that operators insert into a pool: unrelated to those present, attested ones preferred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from medtest.core.errors import NotApplicable
from medtest.core.scenes import Pool, Triple
from medtest.language.captions.vocabulary import vg150
from medtest.relations.prompts import fitting
from medtest.relations.prompts.worlds import World, is_odd, of_a_kind, parts, postures, related, unrelated


def draw_exchange(
    pool: Pool, world: World, rng: np.random.Generator, *, plausible: bool, careful: bool = False
) -> dict[str, Any]:
    """Draw an entity and another class for it.

    Entities are equally likely. Among the classes that the pool has room for, those with attested triples are
    preferred, then those with attested predicates, then those of the same kind, then all.

    Args:
        pool: The pool.
        world: Classes and attested triples.
        rng: The case's random generator.
        plausible: Whether to prefer attested classes.
        careful: Whether the new class must be of the same kind, or attested in the only triple of a prompt
            without attributes of the entity, so that no tower has a beard and no horse is wooden.

    Returns:
        Parameters ``entity`` (its index), ``name`` (the new class) and ``attested``, the evidence for the new class:
        ``triples``: all of its triples are attested; ``predicates``: their predicates are, on the same side; ``kind``:
        none is, but the new class is of the same kind as the old one; ``no``: no such class exists, or evidence was not
        required.

    Raises:
        NotApplicable: No entity has a class that can be replaced.
    """
    vocabulary = vg150()
    free = unrelated(world.classes, pool)
    of_sort = {sort: [name for name in free if vocabulary.counted(name) == sort] for sort in (True, False)}
    changeable = [
        (at, names)
        for at, entity in enumerate(pool.entities)
        if vocabulary.class_of(entity.name) is not None
        and entity.name not in parts()
        and (names := of_sort[vocabulary.counted(entity.name)])
    ]
    if not changeable:
        raise NotApplicable("no entity of the prompt has a class that can be exchanged")
    if careful and world.photographed:
        fitting_names = [(at, [name for name in names if _fits(pool, world, at, name)]) for at, names in changeable]
        changeable = [(at, names) for at, names in fitting_names if names]
        if not changeable:
            raise NotApplicable("no entity of the prompt has a class that others can stand for in its own words")
    at, names = changeable[int(rng.integers(len(changeable)))]
    if careful:
        names = [name for name in names if _fits(pool, world, at, name)]
    attested, chosen = _plausible(pool, world, at, names) if plausible and names else ("no", names)
    if not chosen:
        raise NotApplicable(f"no other class is plausible for {pool.entities[at].name!r} in this prompt")
    return {"entity": at, "name": chosen[int(rng.integers(len(chosen)))], "attested": attested}


_BESIDE = frozenset(("wearing", "holding", "with", "has", "of", "near", "behind", "in front of"))
"""Predicates that place nothing, or something beside another."""


def _acts_again(pool: Pool, at: int, predicate: str, *, is_subject: bool) -> bool:
    """Return True if a relation adds an action or a place to an entity that has one.

    Args:
        pool: The pool.
        at: Index of the entity.
        predicate: Predicate of the new relation.
        is_subject: Whether the new thing is the subject.
    """
    acts = predicate.endswith("ing") and predicate not in postures()
    if is_subject:
        return acts and any(triple.object == at and triple.predicate.endswith("ing") for triple in pool.triples)
    own = [triple.predicate for triple in pool.triples if triple.subject == at]
    is_used = any(triple.object == at and triple.predicate.endswith("ing") for triple in pool.triples)
    if predicate not in _BESIDE and (is_used or any(placed not in _BESIDE for placed in own)):
        return True
    return any(held.endswith("ing") for held in own) and predicate not in (
        "wearing",
        "near",
        "with",
        "has",
        "behind",
        "in front of",
    )


def _fits(pool: Pool, world: World, at: int, name: str) -> bool:
    """Return True if a class may replace an entity in a prompt that a person wrote."""
    entity = pool.entities[at]
    lacks = pool.denied or any(not vg150().is_a(denied, "animal") for denied in pool.absent)
    if lacks and vg150().is_a(entity.name, "animal"):
        return False  # "a bird with no leash"
    if is_odd(entity.name, name, entity.attributes):
        return False
    if world.photographed:
        return fitting.may_exchange(pool, at, name)
    if of_a_kind(name, entity.name):
        return True
    held = [triple for triple in pool.triples if at in (triple.subject, triple.object)]
    denies = any(absence[0] == entity.name for absence in pool.denied)
    plain = not entity.attributes and not denies and not pool.absent
    alone = len(pool.triples) == 1  # "a man on a surfboard riding a bike": beside others a likely relation is odd
    return plain and alone and all(_is_attested(pool, world, at, name, triple) for triple in held)


def _is_attested(pool: Pool, world: World, at: int, name: str, triple: Triple) -> bool:
    """Return True if a triple is attested with another class for an entity."""
    ends = [name if end == at else pool.entities[end].name for end in (triple.subject, triple.object)]
    return (ends[0], triple.predicate, ends[1]) in world.attested


def _plausible(pool: Pool, world: World, at: int, names: list[str]) -> tuple[str, list[str]]:
    """Return the most plausible replacements of an entity, and the kind of evidence for them."""
    held = [triple for triple in pool.triples if at in (triple.subject, triple.object)]

    def is_attested(name: str, triple: Triple) -> bool:
        return _is_attested(pool, world, at, name, triple)

    def is_usual(name: str, triple: Triple) -> bool:
        side = world.subjects if triple.subject == at else world.objects
        return name in side.get(triple.predicate, frozenset())

    for attested, test in (("triples", is_attested), ("predicates", is_usual)) if held else ():
        plausible = [name for name in names if all(test(name, triple) for triple in held)]
        if plausible:
            return attested, plausible
    plausible = [name for name in names if of_a_kind(name, pool.entities[at].name)]
    return ("kind", plausible) if plausible else ("no", names)


def draw_addition(
    pool: Pool, world: World, rng: np.random.Generator, *, never: Sequence[str] = (), careful: bool = False
) -> dict[str, Any]:
    """Draw an attested triple between an existing entity and a new class.

    Entities with any attested triple are equally likely, and so are the triples of one entity. An entity that is
    already in, on or riding something gets no second such relation.

    Args:
        pool: The pool.
        world: Classes and attested triples.
        rng: The case's random generator.
        never: Further classes to which the new one must not be related.
        careful: Whether a thing that already does something, or to which something is done, gets no second action.

    Returns:
        Parameters ``anchor`` (index of the existing entity), ``predicate``, ``name`` (class of the new entity) and
        ``subject`` (whether the new entity is the triple's subject).

    Raises:
        NotApplicable: None is attested.
    """
    vocabulary = vg150()
    free = {
        name for name in unrelated(world.classes, pool) if not any(related(name, other) for other in never)
    } - parts()
    posed = {triple.subject for triple in pool.triples if triple.predicate in postures()}
    options: list[list[dict[str, Any]]] = []
    for at, entity in enumerate(pool.entities):
        own = vocabulary.class_of(entity.name) or entity.name
        of_it = [
            {"anchor": at, "predicate": triple[1], "name": triple[0 if is_subject else 2], "subject": is_subject}
            for triple in world.around.get(own, ())
            for is_subject in (False, True)
            if triple[2 if is_subject else 0] == own
            and (triple[0] if is_subject else triple[2]) in free
            and (is_subject or at not in posed or triple[1] not in postures())
            and not (careful and _acts_again(pool, at, triple[1], is_subject=is_subject))
            and (
                not (careful and world.photographed)
                or fitting.may_add(pool, at, triple[1], triple[0 if is_subject else 2], is_subject=is_subject)
            )
        ]
        if of_it:
            options.append(of_it)
    if not options:
        raise NotApplicable("no plausible triple combines an entity of the prompt with a new one")
    of_one = options[int(rng.integers(len(options)))]
    return of_one[int(rng.integers(len(of_one)))]
