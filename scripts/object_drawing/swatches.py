"""Swatches of drawn matter: colour, height, opacity and wetness of stool and blood, lit evenly.

A pixel is two pixels of a 512 × 512 image, as in :class:`medtest.relations.objects.matter.swatches.Swatch`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from object_drawing.shading import Array, noise, smoothstep

SIDE = 256
Colour = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Matter:
    """Matter of a swatch.

    Attributes:
        colours: Dark, middle and light colour, sRGB.
        lumps: Height of lumps in pixels.
        creases: Depth of creases between lumps in pixels.
        crumbs: Height of fine crumbs in pixels.
        opacity: Least and largest opacity.
        wetness: Mean wetness.
        specks: Share of dark undigested specks.
    """

    colours: tuple[Colour, Colour, Colour]
    lumps: float
    creases: float
    crumbs: float
    opacity: tuple[float, float] = (1.0, 1.0)
    wetness: float = 0.6
    specks: float = 0.0


SWATCHES: dict[tuple[str, str], Matter] = {
    ("feces", "clump_brown"): Matter(
        colours=((172, 101, 42), (229, 146, 67), (250, 189, 103)), lumps=1.6, creases=1.5, crumbs=0.34, wetness=0.6
    ),
    ("feces", "clump_crumbly"): Matter(
        colours=((177, 112, 54), (233, 160, 82), (250, 202, 118)), lumps=1.2, creases=1.8, crumbs=0.6, specks=0.02
    ),
    ("feces", "clump_dark"): Matter(
        colours=((132, 77, 34), (181, 115, 56), (222, 152, 78)), lumps=1.8, creases=1.2, crumbs=0.3, wetness=0.8
    ),
    ("feces", "clump_olive"): Matter(
        colours=((152, 102, 38), (210, 147, 62), (245, 189, 98)), lumps=1.5, creases=1.4, crumbs=0.4, wetness=0.7
    ),
    ("feces", "liquid_brown"): Matter(
        colours=((164, 98, 40), (204, 128, 58), (229, 159, 85)),
        lumps=0.5,
        creases=0.2,
        crumbs=0.16,
        opacity=(0.72, 0.96),
        wetness=0.9,
    ),
    ("feces", "liquid_yellow"): Matter(
        colours=((197, 128, 47), (231, 167, 69), (250, 202, 105)),
        lumps=0.6,
        creases=0.3,
        crumbs=0.24,
        opacity=(0.66, 0.94),
        wetness=0.9,
        specks=0.02,
    ),
    ("blood", "clot"): Matter(
        colours=((64, 14, 14), (80, 18, 17), (95, 24, 20)), lumps=1.2, creases=0.6, crumbs=0.2, wetness=0.7
    ),
    ("blood", "film"): Matter(
        colours=((86, 19, 17), (98, 24, 20), (110, 30, 23)), lumps=0.4, creases=0.0, crumbs=0.05, wetness=0.5
    ),
    ("blood", "oozing"): Matter(
        colours=((78, 17, 16), (91, 21, 18), (103, 26, 21)), lumps=0.6, creases=0.1, crumbs=0.1, wetness=0.6
    ),
    ("blood", "pool_large"): Matter(
        colours=((68, 14, 14), (82, 18, 17), (95, 23, 20)), lumps=0.4, creases=0.0, crumbs=0.04, wetness=0.9
    ),
}


def _warped(scale: float, rng: np.random.Generator, strength: float) -> Array:
    """Return fractal noise whose places are moved by other noise, as in matter that was pushed and dried."""
    shape = (SIDE + 64, SIDE + 64)
    base = noise(shape, scale, rng)
    dx, dy = noise(shape, scale * 1.6, rng, 3), noise(shape, scale * 1.6, rng, 3)
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    y = np.clip(rows + 32 + strength * dy[:SIDE, :SIDE], 0, shape[0] - 1).astype(int)
    x = np.clip(columns + 32 + strength * dx[:SIDE, :SIDE], 0, shape[1] - 1).astype(int)
    return np.asarray(base[y, x], np.float32)


def draw_swatch(matter: Matter, rng: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the albedo picture and the surface picture (height, opacity, wetness), uint8 S×S×3 RGB."""
    shape = (SIDE, SIDE)
    lump, fold, crumb = _warped(40, rng, 9), _warped(64, rng, 16), noise(shape, 5, rng, 3)
    crease = np.exp(-((fold / 0.22) ** 2))
    height = matter.lumps * lump - matter.creases * crease + matter.crumbs * crumb
    tone = 0.5 + 0.20 * _warped(56, rng, 12) + 0.10 * lump - 0.24 * crease * (matter.creases > 0.5) + 0.05 * crumb
    dark, middle, light = (np.array(colour, np.float32) for colour in matter.colours)
    t = np.clip(tone, 0, 1)[..., None]
    colour = np.where(t < 0.5, dark + (middle - dark) * 2 * t, middle + (light - middle) * (2 * t - 1))
    if matter.specks:
        speck = smoothstep(2.1 - 8 * matter.specks, 2.6, noise(shape, 7, rng, 2))[..., None]
        colour = colour * (1 - np.array((0.16, 0.2, 0.24), np.float32) * speck)
        height = height + 0.5 * speck[..., 0]
    low, high = matter.opacity
    opacity = low + (high - low) * smoothstep(-1.2, 1.2, _warped(30, rng, 8))
    wetness = matter.wetness * (0.55 + 0.45 * smoothstep(-1.0, 1.0, noise(shape, 24, rng, 3)))
    surface = np.dstack([128 + 16 * height, 255 * opacity, 255 * np.clip(wetness, 0, 1)])
    # Fewer grey levels make smaller files and cannot be seen under light and noise.
    return _rounded(colour, 4), _rounded(surface, 2)


def _rounded(values: Array, step: int) -> NDArray[np.uint8]:
    return np.clip(np.round(values / step) * step, 0, 255).astype(np.uint8)
