"""Structural encoding of captions and pictures, used for ``RP-struct`` without a network.

A caption is encoded by its pool and a picture by the scene that a reader detected: each class with its count, each
attribute of a class, each relation between classes. Their similarity is the cosine. Terms that the reader cannot detect
are left out of the caption.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from medtest.core.scenes import Pool, Tells
from medtest.results.fidelity.features import Floats, Integers
from medtest.results.fidelity.measures.retrieval import Fits

_MOST_OF_A_CLASS: Final = 20
"""Largest count of a class."""


_EVERYTHING: Final = Tells()


def pool_terms(pool: Pool, tells: Tells = _EVERYTHING) -> Counter[Hashable]:
    """Return the terms of a pool that the reader can detect, each counted as often as it occurs."""
    terms: Counter[Hashable] = Counter()
    total: Counter[str] = Counter()
    for entity in pool.entities:
        if not tells.names(entity.name):
            continue
        total[entity.name] += 1 if entity.count is None or not tells.counts else entity.count
        terms.update(
            ("is", entity.name, attribute) for attribute in set(entity.attributes) if tells.describes(attribute)
        )
    terms.update(_each(total))
    terms.update(("does", *triple) for triple in set(pool.named()) if tells.relates(triple))
    return terms


def scene_terms(scene: Any) -> set[Hashable]:
    """Return the terms of a scene, in the form of :func:`pool_terms`.

    Args:
        scene: JSON value from :meth:`medtest.core.scenes.Scene.as_json`; no objects are built, as there are many
            scenes.

    Raises:
        ValueError: The value is not a scene.
    """
    try:
        entities = scene["entities"]
        names = [str(entity[0]) for entity in entities]
        terms = set(_each(Counter(names)))
        terms.update(("is", str(entity[0]), str(attribute)) for entity in entities for attribute in entity[3])
        terms.update(("does", names[triple[0]], str(triple[1]), names[triple[2]]) for triple in scene["triples"])
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"no scene of entities and triples ({error})") from None
    return terms


def _each(names: Counter[str]) -> Iterable[Hashable]:
    """Return one term for the first of a class, another for the second, and so on."""
    return (("is there", name, n) for name, count in names.items() for n in range(min(count, _MOST_OF_A_CLASS)))


def structural(scenes: Sequence[str], tells: Sequence[str], pools: Sequence[str]) -> Fits:
    """Return a function that compares scenes with the pools of captions.

    Args:
        scenes: JSON text of each picture's scene (:meth:`medtest.core.scenes.Scene.as_json`).
        tells: JSON text of what its reader can detect.
        pools: JSON text of each caption's pool (:meth:`medtest.core.scenes.Pool.as_json`).

    Raises:
        ValueError: A text has another form.
    """
    parsed = [Pool.of_json(json.loads(text)) for text in pools]

    @cache
    def captions_for(reader: str) -> tuple[dict[Hashable, int], Integers, Floats]:
        return _weighted_terms(parsed, Tells.of_json(json.loads(reader)) if reader else Tells())

    def fits(rows: Integers, captions_of: Integers) -> Floats:
        cosines = np.zeros(captions_of.shape)
        for at, (row, captions) in enumerate(zip(rows, captions_of, strict=True)):
            numbers, terms, weights = captions_for(tells[row])
            present = np.zeros(len(numbers) + 1)  # the last entry is for padding
            for term in scene_terms(json.loads(scenes[row])):
                if term in numbers:
                    present[numbers[term]] = 1.0
            cosines[at] = (present[terms[captions]] * weights[captions]).sum(1)
        return cosines

    return fits


def _weighted_terms(pools: Sequence[Pool], tells: Tells) -> tuple[dict[Hashable, int], Integers, Floats]:
    """Return the terms of captions by index, captions × most terms, and their weights, for one kind of reader."""
    terms_by_pool = [list(pool_terms(pool, tells)) for pool in pools]
    numbers: dict[Hashable, int] = {}
    for terms in terms_by_pool:
        for term in terms:
            numbers.setdefault(term, len(numbers))
    width = max((len(terms) for terms in terms_by_pool), default=0)
    places = np.full((len(terms_by_pool), max(1, width)), len(numbers), np.int64)
    weights = np.zeros(places.shape)
    for row, terms in enumerate(terms_by_pool):
        places[row, : len(terms)] = [numbers[term] for term in terms]
        weights[row, : len(terms)] = 1 / np.sqrt(max(1, len(terms)))
    return numbers, places, weights
