"""Generated pictures with known truth, for cards of readers; no reader is trained on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from medtest.core.scenes import SIDES, Scene, SeenEntity, alphabetical
from medtest.readers.pictures.labelled import LabelledPicture, LabelledPictures

if TYPE_CHECKING:
    from medtest.core.cases import Image

_APART: Final = 0x63617264
"""First number of these pictures' random streams, which no training uses."""
POLYP: Final = "polyp"
_PARIS: Final = {"ip": "Paris Ip", "is": "Paris Is", "iia": "Paris IIa"}


class DrawnPictures(Sequence[LabelledPicture]):
    """Pictures that are drawn when they are reached, so that memory holds those of one batch.

    Args:
        count: Number of pictures.
        draw: Returns a picture by its number.
    """

    def __init__(self, count: int, draw: Callable[[int], LabelledPicture]) -> None:
        self._numbers, self._draw = range(count), draw

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> LabelledPicture: ...

    @overload
    def __getitem__(self, index: slice) -> list[LabelledPicture]: ...

    def __getitem__(self, index: int | slice) -> LabelledPicture | list[LabelledPicture]:
        numbers = self._numbers[index]
        return self._draw(numbers) if isinstance(numbers, int) else [self._draw(number) for number in numbers]


def scene_pictures(count: int, seed: int) -> LabelledPictures:
    """Return drawn scenes (:mod:`medtest.phantoms.scenes`) with classes, colours and relations of their boxes.

    Args:
        count: Number of scenes.
        seed: Seed of the draws.
    """
    from medtest.phantoms.scenes import CLASSES, COLOURS
    from medtest.readers.pictures.spatial import PREDICATES

    return LabelledPictures(
        pictures=DrawnPictures(count, partial(_scene, seed)),
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
    """Return pictures of the seeds ``question_phantoms``: polyps with their attributes, diseases, instruments.

    Args:
        count: Number of pictures.
        seed: Seed of the draws.
    """
    from medtest.language.orders.contents import PARIS, SIZES
    from medtest.phantoms.questions.plan import COLOURS, DISEASES, INSTRUMENTS

    return LabelledPictures(
        pictures=DrawnPictures(count, partial(_endoscopy, seed)),
        classes=frozenset({POLYP, *DISEASES, *INSTRUMENTS}),
        attributes=frozenset((*SIZES, *COLOURS, *PARIS)),
        data=f"{count:,} drawn question phantoms, seed {seed}",
    )


def _endoscopy(seed: int, index: int) -> LabelledPicture:
    return LabelledPicture(
        name=f"question phantom {index}",
        pixels=partial(_question_pixels, index, seed),
        truth=Scene(entities=_endoscopic_findings(index, seed)),
    )


def _endoscopic_findings(index: int, seed: int) -> tuple[SeenEntity, ...]:
    from medtest.phantoms.questions.generator import plan

    scene = plan(index, seed)
    polyps = [
        SeenEntity(name=POLYP, attributes=alphabetical((polyp.size, polyp.colour, _PARIS[polyp.type])))
        for polyp in scene.polyps
    ]
    others = (*((scene.disease,) if scene.disease else ()), *(tool.kind for tool in scene.instruments))
    return (*polyps, *(SeenEntity(name=name) for name in others))


def _question_pixels(index: int, seed: int) -> Image:
    from medtest.phantoms.questions.generator import make

    return make(index, seed).image


def film_pictures(count: int, seed: int) -> LabelledPictures:
    """Return chest phantoms with their findings, and the patient's side of those that have one.

    Args:
        count: Number of films.
        seed: Seed of the draws.
    """
    from medtest.phantoms.chest import NAMES

    return LabelledPictures(
        pictures=DrawnPictures(count, partial(_film, _APART + seed)),
        classes=frozenset(NAMES),
        attributes=frozenset(SIDES),
        data=f"{count:,} drawn chest films, seed {seed}",
    )


def _film(suite_seed: int, index: int) -> LabelledPicture:
    from medtest.phantoms.chest import make
    from medtest.phantoms.chest.sides import sides_of
    from medtest.readers.pictures.findings.labels import attributes_of_sides

    film = make(index, suite_seed)
    sides = sides_of(film.facts)
    entities = tuple(SeenEntity(name=name, attributes=attributes_of_sides(sides.get(name, ()))) for name in film.labels)
    return LabelledPicture(name=f"film {index}", pixels=lambda: film.image, truth=Scene(entities=entities))


def capsule_pictures(count: int, seed: int) -> LabelledPictures:
    """Return capsule phantoms with their lesions.

    Args:
        count: Number of frames.
        seed: Seed of the draws.
    """
    from medtest.phantoms.classes import CAPSULE_FINDINGS

    return LabelledPictures(
        pictures=DrawnPictures(count, partial(_capsule_frame, _APART + seed)),
        classes=frozenset(CAPSULE_FINDINGS.names),
        data=f"{count:,} drawn capsule frames, seed {seed}",
    )


def _capsule_frame(suite_seed: int, index: int) -> LabelledPicture:
    from medtest.phantoms.capsule.findings import make

    frame = make(index, suite_seed)
    entities = tuple(SeenEntity(name=name) for name in frame.labels)
    return LabelledPicture(name=f"frame {index}", pixels=lambda: frame.image, truth=Scene(entities=entities))
