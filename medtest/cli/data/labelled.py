"""Generated pictures with known truth, for cards of readers; no reader is trained on them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from medtest.core.scenes import Scene, SeenEntity
from medtest.readers.pictures.labelled import LabelledPicture, LabelledPictures

if TYPE_CHECKING:
    from medtest.core.cases import Image

_APART: Final = 0x63617264
"""First number of these pictures' random streams, which no training uses."""
POLYP: Final = "polyp"


def scene_pictures(count: int, seed: int) -> LabelledPictures:
    """Return drawn scenes (:mod:`medtest.phantoms.scenes`) with classes, colours and relations of their boxes.

    Args:
        count: Number of scenes.
        seed: Seed of the draws.
    """
    from medtest.phantoms.scenes import CLASSES, COLOURS
    from medtest.readers.pictures.spatial import PREDICATES

    return LabelledPictures(
        pictures=[_scene(seed, index) for index in range(count)],
        classes=frozenset(CLASSES),
        predicates=frozenset(PREDICATES),
        attributes=frozenset(COLOURS),
        data=f"{count:,} drawn scenes, seed {seed}",
    )


def _scene(seed: int, index: int) -> LabelledPicture:
    from medtest.phantoms.scenes import draw_scene
    from medtest.readers.pictures.spatial import triples_of
    from medtest.training.scenes.layouts import random_layout

    rng = np.random.Generator(np.random.PCG64([_APART, seed, index]))
    placed = random_layout(rng)
    entities = tuple(SeenEntity(name=figure.name, box=figure.box, attributes=(figure.colour,)) for figure in placed)
    return LabelledPicture(
        name=f"scene {index}",
        pixels=partial(draw_scene, placed, rng=rng),
        truth=Scene(entities=entities, triples=triples_of(entities)),
    )


def question_pictures(count: int, seed: int) -> LabelledPictures:
    """Return pictures of the seeds ``question_phantoms``, with the single class polyp.

    Args:
        count: Number of pictures; one shows a polyp if the true answers to the question on findings name one.
        seed: Seed of the draws.
    """
    pictures = []
    for index in range(count):
        pictures.append(
            LabelledPicture(
                name=f"question phantom {index}",
                pixels=partial(_question_pixels, index, seed),
                truth=Scene(entities=(SeenEntity(name=POLYP),) if _has_polyp(index, seed) else ()),
            )
        )
    return LabelledPictures(
        pictures=pictures, classes=frozenset({POLYP}), data=f"{count:,} drawn question phantoms, seed {seed}"
    )


def _has_polyp(index: int, seed: int) -> bool:
    from medtest.phantoms.questions.generator import plan

    return bool(plan(index, seed).polyps)


def _question_pixels(index: int, seed: int) -> Image:
    from medtest.phantoms.questions.generator import make

    return make(index, seed).image
