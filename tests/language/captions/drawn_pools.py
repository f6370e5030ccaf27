"""Pools drawn over the whole vocabulary: classes, predicates, verbs, counts, attributes, things of one class."""

from __future__ import annotations

import random

from medtest.core.scenes import Entity, Pool, alphabetical, pool_of
from medtest.language.captions.vocabulary import vg150

ATTRIBUTES = (
    *("red", "green", "blue", "yellow", "white", "black", "purple", "brown", "pink", "gray", "orange"),
    *(
        "wooden",
        "plastic",
        "glass",
        "metal",
        "brick",
        "large",
        "small",
        "old",
        "young",
        "striped",
        "broken",
        "shiny",
        "open",
    ),
    *("smiling", "parked", "folded", "sleeping", "dirty", "empty", "unusual"),
)
VERBS = ("pulling", "chasing", "pushing", "kicking", "licking", "throwing", "cutting", "feeding", "reading", "making")


def drawn(rng: random.Random) -> Pool:
    """Draw a pool of one to six entities and none to six relations."""
    vocabulary = vg150()
    names = [rng.choice(vocabulary.names) for _ in range(rng.randint(1, 6))]
    if len(names) > 1 and rng.random() < 0.35:
        names[-1] = names[0]
    entities = []
    for name in names:
        count = None if not vocabulary.counted(name) else rng.choice((1, 1, 1, 1, 2, 3, 4, 12, 25, None))
        attributes = rng.sample(ATTRIBUTES, rng.choice((0, 0, 1, 1, 2)))
        entities.append(Entity(name=name, count=count, attributes=alphabetical(attributes)))
    predicates = [relation for relation in vocabulary.relations if relation != "and"] + list(VERBS)
    pairs = [(a, b) for a in range(len(names)) for b in range(len(names)) if a != b]
    rng.shuffle(pairs)
    triples = [(a, rng.choice(predicates), b) for a, b in pairs[: rng.randint(0, 6)]]
    if rng.random() < 0.6:
        triples.sort()
    return pool_of(entities, triples)
