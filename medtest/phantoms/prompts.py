"""Synthetic pools: contents of prompts for drawn scenes, by number.

Entities have the classes and colours of :mod:`medtest.phantoms.scenes` and distinct classes; each relation links a new
entity to an earlier one, so that relations never contradict each other and a layout can satisfy all of them.
"""

from __future__ import annotations

import numpy as np

from medtest.core.portable import key_generator
from medtest.core.scenes import Entity, Pool, pool_of
from medtest.phantoms.scenes import CLASSES, COLOURS

REVISION = 1
RELATIONS: tuple[str, ...] = (
    "above",
    "behind",
    "in",
    "in front of",
    "left of",
    "near",
    "on",
    "right of",
    "under",
)
"""Relations between two things in a drawn scene."""
MOST_ENTITIES = 8
MOST_OF_ONE = 3
_UPON = ("in", "on")
_COLOURED = 0.7
_SEVERAL = 0.2


def prompt_rng(suite_seed: int, index: int) -> np.random.Generator:
    """Return the generator of one pool, keyed by ``[suite_seed, "prompts", index]``."""
    return key_generator([int(suite_seed), "prompts", int(index)])


def make(index: int, suite_seed: int, *, fewest: int = 1, most: int = 5, related: float = 1.0) -> Pool:
    """Return the pool of a number, independent of how many are generated.

    Args:
        index: Its number.
        suite_seed: The suite's seed.
        fewest: Least number of entities, 1 or more.
        most: Greatest number, up to :data:`MOST_ENTITIES`; all numbers between are equally likely.
        related: Probability that an entity after the first is related to an earlier one; others are only named.

    Returns:
        Entities of distinct classes, seven in ten with a colour; one in five of those held by at most one triple
        has a count of two to :data:`MOST_OF_ONE`. An entity in or on another is in no second such relation.
    """
    rng = prompt_rng(suite_seed, index)
    count = int(rng.integers(fewest, most + 1))
    names = [CLASSES[int(at)] for at in rng.choice(len(CLASSES), size=count, replace=False)]
    triples: list[tuple[int, str, int]] = []
    upon: set[int] = set()
    for new in range(1, count):
        if rng.random() < related:
            other = int(rng.integers(new))
            relation = RELATIONS[int(rng.integers(len(RELATIONS)))]
            if relation in _UPON and (other in upon or new in upon):
                relation = "near"
            if relation in _UPON:
                upon |= {new, other}
            triples.append((new, relation, other))
    held = [sum(at in (triple[0], triple[2]) for triple in triples) for at in range(count)]
    entities = [_entity(name, held[at], at in upon, rng) for at, name in enumerate(names)]
    return _in_template_order(entities, triples)


def _entity(name: str, held: int, upon: bool, rng: np.random.Generator) -> Entity:
    coloured, several = rng.random() < _COLOURED, rng.random() < _SEVERAL
    colour, many = COLOURS[int(rng.integers(len(COLOURS)))], int(rng.integers(2, MOST_OF_ONE + 1))
    return Entity(
        name=name,
        count=many if several and held <= 1 and not upon else 1,
        attributes=(colour,) if coloured else (),
    )


def _in_template_order(entities: list[Entity], triples: list[tuple[int, str, int]]) -> Pool:
    """Return the pool with its entities in the order used by templates: subjects before objects."""
    order = list(
        dict.fromkeys([end for triple in triples for end in (triple[0], triple[2])] + list(range(len(entities))))
    )
    place = {old: new for new, old in enumerate(order)}
    return pool_of([entities[at] for at in order], [(place[a], relation, place[b]) for a, relation, b in triples])
