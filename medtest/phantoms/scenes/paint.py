"""Colour shades by name, and painting of sprites on a picture."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.scenes.shapes import Shape, Tone

Levels: TypeAlias = tuple[float, float, float]
"""Red, green and blue, 0 to 255."""

RANGES: Final[Mapping[str, tuple[float, float, float, float, float, float]]] = MappingProxyType(
    {
        "red": (0.983, 1.008, 0.78, 0.95, 0.74, 0.94),
        "orange": (0.068, 0.088, 0.88, 1.0, 0.93, 1.0),
        "yellow": (0.138, 0.162, 0.72, 0.95, 0.92, 1.0),
        "green": (0.29, 0.40, 0.55, 0.85, 0.45, 0.75),
        "blue": (0.575, 0.635, 0.65, 0.90, 0.60, 0.95),
        "purple": (0.745, 0.795, 0.50, 0.75, 0.45, 0.72),
        "pink": (0.905, 0.945, 0.30, 0.48, 0.95, 1.0),
        "brown": (0.055, 0.078, 0.55, 0.70, 0.36, 0.50),
        "black": (0.0, 1.0, 0.0, 0.15, 0.08, 0.17),
        "white": (0.0, 1.0, 0.0, 0.05, 0.93, 1.0),
    }
)
"""Lowest and highest hue, saturation and value of each colour, 0 to 1; a hue above 1 wraps around."""
FIXED: Final[Mapping[Tone, Levels]] = MappingProxyType(
    {
        "tyre": (38.0, 38.0, 42.0), "ink": (44.0, 42.0, 48.0), "metal": (186.0, 190.0, 196.0),
        "glass": (196.0, 224.0, 238.0), "skin": (232.0, 186.0, 150.0), "wood": (152.0, 108.0, 66.0),
        "cream": (246.0, 240.0, 224.0), "glow": (255.0, 238.0, 168.0), "leaf": (92.0, 142.0, 70.0),
        "screen": (74.0, 98.0, 122.0), "snow": (250.0, 250.0, 252.0),
    }
)  # fmt: skip
"""Tones that do not depend on a thing's colour."""
_FINE: Final = 2
"""Factor by which sprites are drawn larger than in the picture."""
_LIT, _SHADED = 1.08, 0.88
"""Brightness of a sprite's upper and lower edge."""


def tones(colour: str, rng: np.random.Generator) -> dict[Tone, Levels]:
    """Return the tones of a thing in a random shade of the named colour."""
    low_h, high_h, low_s, high_s, low_v, high_v = RANGES[colour]
    hue, saturation, value = (
        float(rng.uniform(low, high)) for low, high in ((low_h, high_h), (low_s, high_s), (low_v, high_v))
    )
    main = _levels(hue % 1.0, saturation, value)
    deep: Levels = (10.0, 10.0, 12.0) if colour == "black" else _mixed(main, (20.0, 18.0, 24.0), 0.72)
    shades = {
        "main": main,
        "light": _mixed(main, (255.0, 255.0, 255.0), 0.16 if colour == "black" else 0.34),
        "dark": _mixed(main, (20.0, 18.0, 24.0), 0.14 if colour == "white" else 0.30),
        "deep": deep,
    }
    wobble = float(rng.uniform(0.94, 1.04))
    return shades | {name: _mixed((0.0, 0.0, 0.0), levels, wobble) for name, levels in FIXED.items()}


def _levels(hue: float, saturation: float, value: float) -> Levels:
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, value)
    return 255.0 * red, 255.0 * green, 255.0 * blue


def muted(
    rng: np.random.Generator, value: tuple[float, float], saturation: tuple[float, float] = (0.05, 0.3)
) -> Levels:
    """Return a random colour of low saturation, in 0 to 255."""
    return _levels(float(rng.uniform()), float(rng.uniform(*saturation)), float(rng.uniform(*value)))


def _mixed(first: Levels, two: Levels, share: float) -> Levels:
    red, green, blue = (min(255.0, a + (b - a) * share) for a, b in zip(first, two, strict=True))
    return red, green, blue


def lay(
    picture: NDArray[np.uint8],
    shapes: Sequence[Shape],
    levels: Mapping[Tone, Levels],
    edges: Sequence[float],
    outline: float,
) -> None:
    """Paint shapes of the unit square on a picture, in place.

    Args:
        picture: uint8 H×W×3 RGB.
        shapes: Shapes from bottom to top.
        levels: Colour of each tone.
        edges: Left, top, right and bottom edge of the square in pixels; parts outside the picture are cut off.
        outline: Width of the dark outline in pixels, within the square.
    """
    height, width = picture.shape[:2]
    left, top = max(0, int(edges[0])), max(0, int(edges[1]))
    right, bottom = min(width, int(-(-edges[2] // 1))), min(height, int(-(-edges[3] // 1)))
    if right <= left or bottom <= top:
        return
    shape = ((bottom - top) * _FINE, (right - left) * _FINE)
    half = 0.5 * outline
    # Sixteenths of a fine pixel; OpenCV's pixel centres are at whole numbers.
    grow = np.array([edges[2] - edges[0] - 2.0 * half, edges[3] - edges[1] - 2.0 * half]) * (16.0 * _FINE)
    start = np.array([edges[0] + half - left, edges[1] + half - top]) * (16.0 * _FINE) - 8.0
    lines = [[np.rint(line * grow + start).astype(np.int32).reshape(-1, 1, 2) for line in s.lines()] for s in shapes]
    colour = np.empty((*shape, 3), np.uint8)
    colour[:] = np.rint(levels["deep"]).astype(np.uint8)
    cover = np.zeros(shape, np.uint8)
    thick = max(1, round(outline * _FINE))
    for drawn, shape_ in zip(lines, shapes, strict=True):
        cv2.fillPoly(cover, drawn, 255, cv2.LINE_AA, 4)
        cv2.polylines(cover, drawn, True, 255, thick, cv2.LINE_AA, 4)
        cv2.polylines(colour, drawn, True, _rounded(levels["deep"]), max(1, thick // 2), cv2.LINE_AA, 4)
        cv2.fillPoly(colour, drawn, _rounded(levels[shape_.tone]), cv2.LINE_AA, 4)
    _blend(picture[top:bottom, left:right], colour, cover)


def _rounded(levels: Levels) -> Any:
    return tuple(round(level) for level in levels)


def _blend(under: NDArray[np.uint8], colour: NDArray[np.uint8], cover: NDArray[np.uint8]) -> None:
    size = (under.shape[1], under.shape[0])
    # The rounded integer mean of 2×2 bytes is the same on every processor.
    small = cv2.resize(colour, size, interpolation=cv2.INTER_AREA).astype(np.float32)
    alpha = cv2.resize(cover, size, interpolation=cv2.INTER_AREA).astype(np.float32)[..., None] * np.float32(1 / 255)
    light = np.linspace(_LIT, _SHADED, size[1], dtype=np.float32)[:, None, None]
    mixed = under + alpha * (np.minimum(small * light, np.float32(255.0)) - under)
    under[...] = np.rint(mixed).astype(np.uint8)
