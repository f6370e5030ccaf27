"""The wall of the colon: lumen, haustral folds, light that falls off, and its colour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtest.phantoms.fields import (
    Field,
    PixelGrid,
    as_field,
    direction,
    ellipse_radius,
    harmonics,
    pick,
    smoothstep,
    value_noise,
)

VIEWS: dict[str, float] = {"lumen": 0.62, "wall": 0.38}
"""Views with weights: along the colon, or at its wall."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tissue:
    """The wall at working size.

    Attributes:
        light: float32 h×w, linear light that reaches the sensor, median 1 in the field.
        albedo: float32 (3,), linear reflectance of red, green and blue.
        tint: float32 h×w, slow variation of colour around 0; positive is redder.
        view: One of :data:`VIEWS`.
        lumen: Centre of the lumen in grid units, or None.
        hue: Name of the tissue's colour.
    """

    light: Field
    albedo: Field
    tint: Field
    view: str
    lumen: tuple[float, float] | None
    hue: str


HUES: dict[str, tuple[float, float, float, float]] = {
    "salmon": (0.315, 0.17, 0.28, 0.035),
    "pink": (0.32, 0.225, 0.22, 0.03),
    "orange": (0.36, 0.12, 0.22, 0.03),
    "red": (0.245, 0.15, 0.14, 0.02),
    "yellow": (0.43, 0.13, 0.07, 0.03),
    "greyish": (0.42, 0.32, 0.07, 0.04),
}
"""Green and blue relative to red in linear light, weight, and spread of both, from means of real tissue."""


def _colour(rng: np.random.Generator) -> tuple[str, Field]:
    name = pick(rng, {hue: values[2] for hue, values in HUES.items()})
    green, blue, _, spread = HUES[name]
    return name, as_field(
        [1.0, green + spread * float(rng.uniform(-1, 1)), max(0.05, blue + spread * float(rng.uniform(-1, 1)))]
    )


def _fold(s: Field, *, strength: Field | float, inner: float, outer: float, edge: float) -> Field:
    """Return the light of one fold: ``s`` is the signed distance from its crest, positive on the camera's side.

    Behind the crest (s < 0) the wall is further away and in shade; on the camera's side it is lit and only its edge
    turns away.
    """
    behind = 1.0 - np.clip(-s * np.float32(1.0 / inner), 0.0, 1.0)
    behind = behind * behind
    u = np.clip(s * np.float32(1.0 / outer), 0.0, 1.0)
    front = 1.0 - u
    rim = 1.0 - np.clip(s * np.float32(5.0 / outer), 0.0, 1.0)
    near = np.float32(0.45) * front * front * front - np.float32(0.4) * rim * rim
    side = smoothstep(s, -edge, edge)
    return as_field(1.0 + strength * (side * near - (1.0 - side) * behind))


def _along_lumen(rng: np.random.Generator, grid: PixelGrid, x: Field, y: Field) -> tuple[Field, tuple[float, float]]:
    cosine, sine = direction(rng)
    away = float(rng.uniform(0.05, 0.95))
    cx, cy = away * cosine, away * sine
    turn = direction(rng)
    stretch = float(rng.uniform(0.75, 1.35))
    hole = float(rng.uniform(0.12, 0.42))
    radius, c, s = ellipse_radius(x, y, (cx, cy), turn=turn, stretch=stretch)
    soft = float(rng.uniform(0.35, 0.7))
    radius = np.sqrt(radius * radius + np.float32(0.01))
    light = as_field(radius / (radius + np.float32(soft)))
    light = as_field(light * np.sqrt(light) * 1.7)
    growth = float(rng.uniform(1.35, 1.85))
    ring = hole
    patch = value_noise(rng, grid.shape, 0.8 / grid.step)
    for k in range(7):
        if ring > 2.2:
            break
        amount = 0.06 if k == 0 else 0.09
        weights = rng.normal(0.0, amount, (3, 2)) / np.array([[1.0], [1.3], [2.5]])
        drift = ring * 0.18
        moved = radius
        if k:
            centre = (cx + drift * float(rng.uniform(-1, 1)), cy + drift * float(rng.uniform(-1, 1)))
            moved, c, s = ellipse_radius(x, y, centre, turn=turn, stretch=stretch)
        distance = as_field(moved * (1.0 + harmonics(c, s, weights)) - np.float32(ring))
        if k == 0:
            strength: Field | float = float(rng.uniform(0.55, 0.85))
            inner = ring * float(rng.uniform(1.2, 4.0))
        else:
            tall = float(rng.uniform(0.2, 0.75))
            side = direction(rng)
            strength = as_field(
                tall * smoothstep(as_field(c * np.float32(side[0]) + s * np.float32(side[1]) + 0.5 * patch), -1.0, 0.6)
            )
            inner = ring * (growth - 1.0) * 0.9
        edge = max(1.2 * grid.step, 0.007 * (1.0 + ring))
        light *= _fold(distance, strength=strength, inner=inner, outer=ring * (growth - 1.0) * 1.1, edge=edge)
        ring *= growth * float(rng.uniform(0.85, 1.15))
    return light, (cx, cy)


def _at_wall(rng: np.random.Generator, grid: PixelGrid, x: Field, y: Field) -> Field:
    cosine, sine = direction(rng)
    slope = float(rng.uniform(0.05, 0.4))
    light = as_field(1.0 + np.float32(slope) * (x * np.float32(cosine) + y * np.float32(sine)))
    light = as_field(np.maximum(light, 0.15))
    patch = value_noise(rng, grid.shape, 0.8 / grid.step)
    for _ in range(int(rng.integers(2, 6))):
        turned = direction(rng) if rng.random() < 0.3 else (cosine, sine)
        far = float(rng.uniform(1.6, 4.0))
        centre = (-far * turned[0], -far * turned[1])
        radius, c, s = ellipse_radius(x, y, centre, turn=turned, stretch=float(rng.uniform(0.7, 1.2)))
        offset = far + float(rng.uniform(-1.0, 0.9))
        distance = as_field(radius - np.float32(offset) + 0.1 * patch)
        tall = float(rng.uniform(0.12, 0.6))
        strength = as_field(tall * smoothstep(as_field(patch + 3.0 * s), -1.2, 0.8))
        width = float(rng.uniform(0.3, 0.8))
        edge = max(1.2 * grid.step, float(rng.uniform(0.008, 0.04)))
        light *= _fold(distance, strength=strength, inner=width, outer=width, edge=edge)
    return light


def _near_fold(rng: np.random.Generator, grid: PixelGrid, x: Field, y: Field) -> Field:
    """Return the gain of a fold so near that it is over-exposed: a bright crescent at one side."""
    turn = direction(rng)
    far = float(rng.uniform(1.9, 3.4))
    reach = far - float(rng.uniform(0.45, 0.95))
    centre = (far * turn[0], far * turn[1])
    radius, c, s = ellipse_radius(x, y, centre, turn=turn, stretch=float(rng.uniform(0.6, 1.1)))
    depth = as_field(np.float32(reach) - radius * (1.0 + harmonics(c, s, rng.normal(0.0, 0.02, (3, 2)))))
    inside = smoothstep(depth, -1.5 * grid.step, max(3.0 * grid.step, 0.03))
    ramp = np.clip(depth * 2.2, 0.0, 1.0)
    gain = float(rng.uniform(1.5, 5.0))
    shade = 1.0 - np.clip(-depth * 4.0, 0.0, 1.0)
    return as_field((1.0 - 0.4 * (1.0 - inside) * shade * shade) * (1.0 + inside * (0.15 + gain * ramp * ramp)))


def make_tissue(rng: np.random.Generator, grid: PixelGrid) -> Tissue:
    """Return a wall of the colon without polyps."""
    hue, albedo = _colour(rng)
    bend = float(rng.uniform(0.02, 0.08))
    x = as_field(grid.x + bend * value_noise(rng, grid.shape, 0.75 / grid.step))
    y = as_field(grid.y + bend * value_noise(rng, grid.shape, 0.75 / grid.step))
    view = pick(rng, VIEWS)
    lumen: tuple[float, float] | None = None
    if view == "lumen":
        light, lumen = _along_lumen(rng, grid, x, y)
    else:
        light = _at_wall(rng, grid, x, y)
    if rng.random() < 0.38:
        light *= _near_fold(rng, grid, x, y)
    slow = value_noise(rng, grid.shape, 0.45 / grid.step)
    middle = value_noise(rng, grid.shape, 0.16 / grid.step)
    hx, hy = (float(v) for v in rng.uniform(-0.35, 0.35, 2))
    # Relief besides folds: its slope along the line to the light brightens or darkens.
    relief = as_field(slow + 0.12 * middle)
    down = np.zeros_like(relief)
    right = np.zeros_like(relief)
    down[1:] = relief[1:] - relief[:-1]
    right[:, 1:] = relief[:, 1:] - relief[:, :-1]
    lit = right * (grid.x - hx) + down * (grid.y - hy)
    light *= np.clip(1.0 + 0.06 * slow + np.float32(float(rng.uniform(0.005, 0.035)) / grid.step) * lit, 0.3, 2.0)
    square = (grid.x - hx) ** 2 + (grid.y - hy) ** 2
    light *= 1.0 / (1.0 + np.float32(rng.uniform(0.15, 0.8)) * square)
    small = value_noise(rng, grid.shape, 0.07 / grid.step)
    tint = as_field(0.03 * value_noise(rng, grid.shape, 0.6 / grid.step) + 0.03 * middle + 0.025 * small)
    return Tissue(light=light, albedo=albedo, tint=tint, view=view, lumen=lumen, hue=hue)
