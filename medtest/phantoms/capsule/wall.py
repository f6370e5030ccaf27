"""The wall of the small bowel: folds, a lumen or a closed one, and its colour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtest.phantoms.colon.tissue import make_tissue
from medtest.phantoms.drawing import noise, plane
from medtest.phantoms.fields import Field, PixelGrid, as_field, direction, ellipse_radius, harmonics, pick, smoothstep

WORK = 192
"""Pixels a side for drawing everything smooth, independent of the picture's size."""
HUES: dict[str, tuple[float, float, float]] = {
    "ochre": (0.50, 0.16, 0.26),
    "yellow": (0.47, 0.10, 0.12),
    "pink": (0.36, 0.22, 0.22),
    "rose": (0.29, 0.16, 0.18),
    "orange": (0.30, 0.07, 0.16),
    "red": (0.24, 0.11, 0.06),
}
"""Green and blue relative to red in linear light, and weight; from frames of real capsules."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Wall:
    """The wall at working size.

    Attributes:
        albedo: float32 h×w×3, linear reflectance relative to the red of healthy mucosa.
        light: float32 h×w, linear light, median about 1.
        view: ``lumen``, ``wall`` or ``closed``.
        hue: One of :data:`HUES`.
    """

    albedo: Field
    light: Field
    view: str
    hue: str


def _closed(rng: np.random.Generator, grid: PixelGrid) -> Field:
    """Return the light on a contracted bowel: creases that converge in one point."""
    dx, dy = direction(rng)
    away = float(rng.uniform(0.0, 0.5))
    bend = noise(rng, grid.shape, 5) * np.float32(0.06)
    radius, c, s = ellipse_radius(grid.x - away * dx + bend, grid.y - away * dy - bend, (0.0, 0.0))
    wave = harmonics(c, s, [(0.0, 0.0), (0.0, 0.0), *rng.normal(0.0, 0.5, (6, 2))])
    # Wider towards the centre, so that no crease becomes thinner than a pixel of the working size.
    crease = 1.0 - np.clip(np.abs(wave) * (2.2 * radius / (radius + np.float32(0.3))), 0.0, 1.0)
    reach = 1.0 - smoothstep(radius, 0.2, float(rng.uniform(0.7, 1.4)))
    hole = 1.0 - smoothstep(radius, 0.0, float(rng.uniform(0.08, 0.25)))
    light = (1.0 - 0.55 * crease * crease * reach) * (1.0 - 0.75 * hole)
    return as_field(light * (0.75 + 0.35 * radius))


def make_wall(rng: np.random.Generator) -> Wall:
    """Draw a wall without lesions."""
    grid = plane(WORK)
    closed = bool(rng.random() < 0.2)
    tissue = make_tissue(rng, grid)
    light, view = (_closed(rng, grid), "closed") if closed else (tissue.light, tissue.view)
    light = np.clip(light / np.float32(max(1e-3, float(np.median(light)))), 0.0, 2.6)
    light = as_field(0.03 + 0.45 * light + 0.52 * light * np.sqrt(light))
    square = grid.x * grid.x + grid.y * grid.y
    light = as_field(light * (1.0 + 0.1 * noise(rng, grid.shape, 9)) * (1.12 - 0.28 * square))
    hue = pick(rng, {name: weight for name, (_, _, weight) in HUES.items()})
    green, blue, _ = HUES[hue]
    spread = rng.uniform(-0.03, 0.03, 2)
    tint = tissue.tint + np.float32(0.05) * noise(rng, grid.shape, 5) + np.float32(0.03) * noise(rng, grid.shape, 14)
    albedo = np.empty((*grid.shape, 3), np.float32)
    albedo[..., 0] = 1.0 + 0.12 * tint
    albedo[..., 1] = (green + float(spread[0])) * (1.0 - 1.2 * tint)
    albedo[..., 2] = max(0.05, blue + float(spread[1])) * (1.0 - 1.0 * tint)
    return Wall(albedo=albedo, light=light, view=view, hue=hue)
