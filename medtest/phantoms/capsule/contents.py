"""Contents of the bowel that resemble lesions: bile, debris, bubbles, harmless red patches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from medtest.core.cases import Json
from medtest.phantoms.capsule.lesions import Lesion
from medtest.phantoms.drawing import Plane, blob, mix, noise, ripples, scale, unit
from medtest.phantoms.fields import Field, as_field, direction, pick, smoothstep

BILE: dict[str, tuple[tuple[float, float, float], float]] = {
    "yellow": ((0.95, 0.85, 0.22), 0.45),
    "green": ((0.62, 0.80, 0.25), 0.25),
    "brown": ((0.55, 0.36, 0.25), 0.30),
}
"""Factors on red, green and blue under a deep layer, and weight. Brown bile looks like old blood."""


def draw_contents(
    rng: np.random.Generator,
    albedo: Field,
    light: Field,
    where: Plane,
    lesions: Sequence[Lesion],
    mask: Field,
    wet: Field,
) -> dict[str, Json]:
    """Draw the bowel's contents into reflectance and light, in place, and return a description.

    Args:
        rng: The stream of contents.
        albedo: float32 h×w×3, reflectance.
        light: float32 h×w, linear light.
        where: The picture's plane.
        lesions: The lesions, which bubbles never cover.
        mask: float32 h×w mask of lesions, over which contents thin out.
        wet: float32 h×w mask of covered villi; raised under bile.
    """
    clear = as_field(1.0 - 0.8 * mask)
    patches = _patches(rng, albedo, where, clear)
    bile = _bile(rng, albedo, light, clear, wet) if rng.random() < 0.5 else None
    debris = _debris(rng, albedo, where, clear) if rng.random() < 0.4 else 0
    bubbles = _bubbles(rng, albedo, light, where, lesions) if rng.random() < 0.4 else 0
    return {"patches": patches, "bile": bile, "debris": debris, "bubbles": bubbles}


def _patches(rng: np.random.Generator, albedo: Field, where: Plane, clear: Field) -> int:
    """Draw redder patches of healthy mucosa, fainter than most erythema."""
    count = int(rng.integers(0, 4))
    for _ in range(count):
        dx, dy = direction(rng)
        away, radius = float(rng.uniform(0.0, 0.8)), float(rng.uniform(0.15, 0.4))
        near = where.around(away * dx, away * dy, radius * 1.9)
        shape = blob(near, away * dx, away * dy, radius, weights=ripples(rng, 4, 0.1))
        alpha = smoothstep(as_field(shape + 0.3 * noise(rng, shape.shape, 7)), -0.1, 0.5)
        strength = float(rng.uniform(0.05, 0.22))
        scale(albedo[near.window], as_field(alpha * clear[near.window] * strength), (1.03, 0.45, 0.52))
    return count


def _bile(rng: np.random.Generator, albedo: Field, light: Field, clear: Field, wet: Field) -> str:
    name = pick(rng, {name: weight for name, (_, weight) in BILE.items()})
    level = noise(rng, clear.shape, 5) + 0.5 * noise(rng, clear.shape, 13) - 0.5 * np.clip(light - 1.0, -0.6, 1.0)
    start = float(rng.uniform(0.2, 1.0))
    pool = as_field(smoothstep(as_field(level), start, start + float(rng.uniform(0.15, 0.8))) * clear)
    deep = as_field(pool * float(rng.uniform(0.4, 1.0)))
    scale(albedo, deep, BILE[name][0])
    np.maximum(wet, pool, out=wet)
    return name


def _debris(rng: np.random.Generator, albedo: Field, where: Plane, clear: Field) -> int:
    """Draw pale flakes: like erosions, but ragged and without a red rim."""
    count = int(rng.integers(1, 12))
    dx, dy = direction(rng)
    middle = float(rng.uniform(0.1, 0.7))
    for _ in range(count):
        ox, oy = direction(rng)
        away = float(rng.uniform(0.0, 0.6))
        x, y = middle * dx + away * ox, middle * dy + away * oy
        radius = 0.02 * 5.0 ** float(rng.random())
        near = where.around(x, y, radius * 2.2)
        shape = blob(near, x, y, radius, stretch=float(rng.uniform(1.0, 2.0)), turn=unit(float(rng.random())))
        ragged = as_field(shape + 0.5 * noise(rng, shape.shape, 6))
        alpha = as_field(smoothstep(ragged, 0.0, 0.5) * clear[near.window] * float(rng.uniform(0.3, 0.9)))
        yellow = float(rng.random())
        mix(albedo[near.window], alpha, (1.0, 0.9 - 0.15 * yellow, 0.7 - 0.45 * yellow))
    return count


def _bubbles(rng: np.random.Generator, albedo: Field, light: Field, where: Plane, lesions: Sequence[Lesion]) -> int:
    """Draw bubbles: a bright rim, a darker inside and a glint."""
    count = int(rng.integers(2, 22))
    dx, dy = direction(rng)
    middle = float(rng.uniform(0.2, 0.85))
    large = float(rng.uniform(0.05, 0.13))
    drawn = 0
    for _ in range(count):
        ox, oy = direction(rng)
        away = float(rng.uniform(0.0, 1.0)) ** 2 * 0.6
        x, y = middle * dx + away * ox, middle * dy + away * oy
        radius = 0.018 + (large - 0.018) * float(rng.random()) ** 2
        glint = unit(float(rng.random()))
        if any((x - lesion.x) ** 2 + (y - lesion.y) ** 2 < (radius + lesion.length) ** 2 for lesion in lesions):
            continue
        near = where.around(x, y, radius * 1.3)
        shape = blob(near, x, y, radius)
        inside = smoothstep(shape, -0.06, 0.06)
        lit = smoothstep(blob(near, x + 0.6 * radius * glint[0], y + 0.6 * radius * glint[1], radius * 1.5), 0.0, 1.0)
        rim = as_field(inside * (1.0 - smoothstep(shape, 0.04, 0.22)) * (0.2 + 0.8 * lit))
        spot = smoothstep(
            blob(near, x + 0.45 * radius * glint[0], y + 0.45 * radius * glint[1], radius * 0.22), 0.0, 0.7
        )
        dark = float(rng.uniform(0.05, 0.3))
        light[near.window] *= 1.0 - dark * inside + float(rng.uniform(0.1, 0.5)) * rim
        mix(albedo[near.window], as_field(np.minimum(1.0, 0.12 * rim + 0.8 * spot)), (1.6, 1.5, 1.2))
        drawn += 1
    return drawn
