"""A scene drawn from what stands where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import portable_opencv
from medtest.phantoms.scenes.animals import SPRITES as ANIMALS
from medtest.phantoms.scenes.grounds import background
from medtest.phantoms.scenes.names import CLASSES, COLOURS, Placed
from medtest.phantoms.scenes.paint import lay, tones
from medtest.phantoms.scenes.shapes import fitted
from medtest.phantoms.scenes.things import SPRITES as THINGS
from medtest.phantoms.scenes.vehicles import SPRITES as VEHICLES

_SPRITES: Final = {**ANIMALS, **VEHICLES, **THINGS}
_TURN: Final = 0.014
"""Largest turn of a sprite: 5°."""
CLUTTER: Final = 6
"""Most things that are no class, where the caller says no number."""


def draw_scene(
    placed: Sequence[Placed], *, size: int = 256, rng: np.random.Generator, clutter: int | None = None
) -> NDArray[np.uint8]:
    """Draw a scene: a random background, and things on it, the later ones over the earlier ones.

    Pose, proportions, shade, background and clutter are drawn at random; where things stand and which colour they have
    is not. The bytes are the same on every processor (:mod:`medtest.core.portable`).

    Args:
        placed: What stands where.
        size: Pixels a side, 16 or more.
        rng: Draws what is random.
        clutter: Number of blobs, pebbles and strokes that are no class; None for 0 to :data:`CLUTTER` at random.

    Returns:
        uint8 size×size×3 RGB.

    Raises:
        ValueError: A class, a colour or a box is none.
    """
    for one in placed:
        _check(one)
    if size < 16:
        raise ValueError(f"a scene of {size} pixels: it has 16 or more a side")
    count = int(rng.integers(CLUTTER + 1)) if clutter is None else clutter
    with portable_opencv():
        picture = background(size, rng, count)
        outline = max(1.0, size / 170.0)
        for one in placed:
            turn, mirrored = float(rng.uniform(-_TURN, _TURN)), bool(rng.integers(2))
            levels = tones(one.colour, rng)
            shapes = fitted(_SPRITES[one.name](rng), turn, mirrored)
            lay(picture, shapes, levels, [edge * size for edge in one.box], outline)
    return picture


def _check(one: Placed) -> None:
    if one.name not in CLASSES:
        raise ValueError(f"{one.name!r} is no class of drawn scenes: {', '.join(CLASSES)}")
    if one.colour not in COLOURS:
        raise ValueError(f"{one.colour!r} is no colour of drawn scenes: {', '.join(COLOURS)}")
    left, top, right, bottom = one.box
    if not (all(math.isfinite(edge) for edge in one.box) and left < right and top < bottom):
        raise ValueError(f"{one.box} is no box: left < right and top < bottom, as fractions of the picture")
