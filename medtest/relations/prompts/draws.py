"""Which class an operator puts into a pool: none that is another word for one that is there; the attested first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from medtest.core.errors import NotApplicable
from medtest.core.scenes import NamedTriple, Pool
from medtest.language.captions.vocabulary import vg150
from medtest.relations.prompts.worlds import World, of_a_kind, parts, postures, related, unrelated


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One entity becomes another class.

    Attributes:
        entity: Its index.
        name: The new class.
        attested: ``triples``: each of its triples is attested of the new class; ``predicates``: of each of them the
            predicate is, on the same side; ``kind``: of none, but the new class is of a kind with the old one; ``no``:
            there is no such class, or none was looked for.
    """

    entity: int
    name: str
    attested: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A new entity and its triple with one that is there.

    Attributes:
        anchor: Index of the entity that is there.
        predicate: Of the triple.
        name: Class of the new entity.
        is_subject: Whether the new entity is the triple's subject.
    """

    anchor: int
    predicate: str
    name: str
    is_subject: bool


def draw_exchange(pool: Pool, world: World, rng: np.random.Generator, *, plausible: bool) -> Exchange:
    """Draw an entity and another class for it.

    Entities are equally likely; of the classes that a pool has room for, those stand to choose whose triples are
    attested, else those whose predicates are, else those of a kind with the old one, else all.

    Args:
        pool: The pool.
        world: What may be named.
        rng: The case's generator.
        plausible: Whether it is asked what is attested.

    Raises:
        NotApplicable: No entity has a class that another may take the place of.
    """
    known = vg150()
    free = unrelated(world.classes, pool)
    of_sort = {sort: [one for one in free if known.counted(one) == sort] for sort in (True, False)}
    changeable = [
        (at, names)
        for at, entity in enumerate(pool.entities)
        if known.class_of(entity.name) is not None
        and entity.name not in parts()
        and (names := of_sort[known.counted(entity.name)])
    ]
    if not changeable:
        raise NotApplicable("no entity of the prompt has a class that another could take the place of")
    at, names = changeable[int(rng.integers(len(changeable)))]
    attested, chosen = _plausible(pool, world, at, names) if plausible else ("no", names)
    return Exchange(entity=at, name=chosen[int(rng.integers(len(chosen)))], attested=attested)


def _plausible(pool: Pool, world: World, at: int, names: list[str]) -> tuple[str, list[str]]:
    """Return the classes that may best take the place of an entity, and what is attested of them."""
    held = [one for one in pool.triples if at in (one.subject, one.object)]
    ends = [entity.name for entity in pool.entities]

    def said(name: str, one: int) -> NamedTriple:
        triple = held[one]
        subject = name if triple.subject == at else ends[triple.subject]
        return (subject, triple.predicate, name if triple.object == at else ends[triple.object])

    def usual(name: str, one: int) -> bool:
        side = world.subjects if held[one].subject == at else world.objects
        return name in side.get(held[one].predicate, frozenset())

    tests: tuple[tuple[str, Callable[[str, int], bool]], ...] = (
        ("triples", lambda name, one: said(name, one) in world.attested),
        ("predicates", usual),
    )
    for attested, test in tests if held else ():
        found = [name for name in names if all(test(name, one) for one in range(len(held)))]
        if found:
            return attested, found
    found = [name for name in names if of_a_kind(name, ends[at])]
    return ("kind", found) if found else ("no", names)


def draw_addition(pool: Pool, world: World, rng: np.random.Generator, *, never: Sequence[str] = ()) -> Addition:
    """Draw an attested triple between an entity that is there and a class that is not.

    Entities of which any is attested are equally likely, and of one entity its triples are. What is in or
    on something already, or rides it, is given nothing else to be in, on or riding.

    Args:
        pool: The pool.
        world: What may be named.
        rng: The case's generator.
        never: Further classes to which the new one must not be related.

    Raises:
        NotApplicable: None is attested.
    """
    known = vg150()
    free = {one for one in unrelated(world.classes, pool) if not any(related(one, other) for other in never)} - parts()
    posed = {one.subject for one in pool.triples if one.predicate in postures()}
    found: list[list[Addition]] = []
    for at, entity in enumerate(pool.entities):
        own = known.class_of(entity.name) or entity.name
        of_it = [
            Addition(anchor=at, predicate=one[1], name=one[0] if is_subject else one[2], is_subject=is_subject)
            for one in world.around.get(own, ())
            for is_subject in (False, True)
            if one[2 if is_subject else 0] == own
            and (one[0] if is_subject else one[2]) in free
            and (is_subject or at not in posed or one[1] not in postures())
        ]
        if of_it:
            found.append(of_it)
    if not found:
        raise NotApplicable("no triple with an entity of the prompt and a new one is attested")
    of_one = found[int(rng.integers(len(found)))]
    return of_one[int(rng.integers(len(of_one)))]
