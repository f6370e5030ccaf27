"""Captions and pictures as what they name: the encoder of ``RP-struct``, which needs no network.

A caption is encoded by its pool and a picture by the scene that a reader saw: each class as often as it is there, each
attribute of a class, each relation between classes. A fit is the cosine between the two; what the reader cannot tell
is left out of the caption, for it could find none of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from medtest.core.scenes import Pool, Tells
from medtest.results.fidelity.features import Floats, Integers
from medtest.results.fidelity.measures.retrieval import Fits

_MOST_OF_A_CLASS: Final = 20
"""A class counts so often at most."""


_EVERYTHING: Final = Tells()


def pool_terms(pool: Pool, tells: Tells = _EVERYTHING) -> Counter[Hashable]:
    """Return what a pool names, as far as a reader could tell it, each term once for every time it is named."""
    found: Counter[Hashable] = Counter()
    total: Counter[str] = Counter()
    for entity in pool.entities:
        if not tells.names(entity.name):
            continue
        total[entity.name] += 1 if entity.count is None or not tells.counts else entity.count
        found.update(("is", entity.name, said) for said in set(entity.attributes) if tells.describes(said))
    found.update(_each(total))
    found.update(("does", *triple) for triple in set(pool.named()) if tells.relates(triple))
    return found


def scene_terms(scene: Any) -> set[Hashable]:
    """Return what a scene shows, in the terms of :func:`pool_terms`.

    Args:
        scene: As :meth:`medtest.core.scenes.Scene.as_json` gives it; there are many, and no objects are made of them.

    Raises:
        ValueError: It is something else.
    """
    try:
        entities = scene["entities"]
        names = [str(one[0]) for one in entities]
        found = set(_each(Counter(names)))
        found.update(("is", str(one[0]), str(said)) for one in entities for said in one[3])
        found.update(("does", names[one[0]], str(one[1]), names[one[2]]) for one in scene["triples"])
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"no scene of entities and triples ({error})") from None
    return found


def _each(names: Counter[str]) -> Iterable[Hashable]:
    """Return a term for the first of a class, another for the second, and so on."""
    return (("is there", name, n) for name, count in names.items() for n in range(min(count, _MOST_OF_A_CLASS)))


class StructuralFit:
    """How well scenes fit pools.

    Args:
        scenes: JSON text of each picture's scene (:meth:`medtest.core.scenes.Scene.as_json`).
        tells: JSON text of what its reader can tell.
        pools: JSON text of each caption's pool (:meth:`medtest.core.scenes.Pool.as_json`).

    Raises:
        ValueError: A text is something else.
    """

    def __init__(self, scenes: Sequence[str], tells: Sequence[str], pools: Sequence[str]) -> None:
        self._pools = [Pool.of_json(json.loads(text)) for text in pools]
        self._scenes, self._tells = scenes, tells
        self._known: dict[str, tuple[dict[Hashable, int], Integers, Floats]] = {}

    def fits(self) -> Fits:
        """Return the function that compares them."""
        return self._fit

    def _fit(self, rows: Integers, asked: Integers) -> Floats:
        found = np.zeros(asked.shape)
        for at, (row, captions) in enumerate(zip(rows, asked, strict=True)):
            numbers, terms, weights = self._captions(self._tells[row])
            seen = np.zeros(len(numbers) + 1)  # the last stands for no term
            for term in scene_terms(json.loads(self._scenes[row])):
                if term in numbers:
                    seen[numbers[term]] = 1.0
            found[at] = (seen[terms[captions]] * weights[captions]).sum(1)
        return found

    def _captions(self, tells: str) -> tuple[dict[Hashable, int], Integers, Floats]:
        """Return the terms of captions by number, captions × most terms, and their weights, for one sort of reader."""
        if tells not in self._known:
            told = Tells.of_json(json.loads(tells)) if tells else Tells()
            listed = [list(pool_terms(pool, told)) for pool in self._pools]
            numbers: dict[Hashable, int] = {}
            for terms in listed:
                for term in terms:
                    numbers.setdefault(term, len(numbers))
            width = max((len(terms) for terms in listed), default=0)
            places = np.full((len(listed), max(1, width)), len(numbers), np.int64)
            weights = np.zeros(places.shape)
            for row, terms in enumerate(listed):
                places[row, : len(terms)] = [numbers[term] for term in terms]
                weights[row, : len(terms)] = 1 / np.sqrt(max(1, len(terms)))
            self._known[tells] = numbers, places, weights
        return self._known[tells]
