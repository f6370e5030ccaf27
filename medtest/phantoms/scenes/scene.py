"""Drawing of scenes from placed things."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import portable_opencv
from medtest.phantoms.scenes import animals, things, vehicles
from medtest.phantoms.scenes.grounds import background
from medtest.phantoms.scenes.names import CLASSES, COLOURS, Placed
from medtest.phantoms.scenes.paint import lay, tones
from medtest.phantoms.scenes.shapes import Shape, fitted

_SPRITES: Final[dict[str, Callable[[np.random.Generator], list[Shape]]]] = {
    name: vars(module)[name] for module in (animals, things, vehicles) for name in CLASSES if name in vars(module)
}
"""Functions that draw a thing, each named after its class."""
_TURN: Final = 0.014
"""Largest rotation of a sprite: 5°."""
CLUTTER: Final = 6
"""Largest random number of clutter items."""


def draw_scene(
    placed: Sequence[Placed], *, size: int = 256, rng: np.random.Generator, clutter: int | None = None
) -> NDArray[np.uint8]:
    """Draw a scene: a random background with things on it, later ones over earlier ones.

    Pose, proportions, shade, background and clutter are random; positions and colours of things are not. The bytes are
    the same on every processor (:mod:`medtest.core.portable`).

    Args:
        placed: Things and their positions.
        size: Pixels a side, 16 or more.
        rng: Random generator.
        clutter: Number of blobs, pebbles and strokes of no class; None for 0 to :data:`CLUTTER` at random.

    Returns:
        uint8 size×size×3 RGB.

    Raises:
        ValueError: A class, a colour or a box is invalid.
    """
    for item in placed:
        _check(item)
    if size < 16:
        raise ValueError(f"a scene of {size} pixels: it has 16 or more a side")
    count = int(rng.integers(CLUTTER + 1)) if clutter is None else clutter
    with portable_opencv():
        picture = background(size, rng, count)
        outline = max(1.0, size / 170.0)
        for item in placed:
            turn, mirrored = float(rng.uniform(-_TURN, _TURN)), bool(rng.integers(2))
            levels = tones(item.colour, rng)
            shapes = fitted(_SPRITES[item.name](rng), turn, mirrored)
            lay(picture, shapes, levels, [edge * size for edge in item.box], outline)
    return picture


def _check(item: Placed) -> None:
    if item.name not in CLASSES:
        raise ValueError(f"{item.name!r} is not a class of drawn scenes: {', '.join(CLASSES)}")
    if item.colour not in COLOURS:
        raise ValueError(f"{item.colour!r} is not a colour of drawn scenes: {', '.join(COLOURS)}")
    left, top, right, bottom = item.box
    if not (all(math.isfinite(edge) for edge in item.box) and left < right and top < bottom):
        raise ValueError(f"{item.box} is not a box: left < right and top < bottom, as fractions of the picture")
