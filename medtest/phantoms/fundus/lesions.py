"""Lesions of diabetic retinopathy, and harmless structures that resemble them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from medtest.core.cases import Json
from medtest.phantoms.drawing import Canvas, Plane, blob, mix, noise, scale, unit, wander
from medtest.phantoms.fields import Field, Point, as_field, smoothstep
from medtest.phantoms.fundus.retina import DISC, RADIUS, Anatomy, Fundus

Circle: TypeAlias = tuple[float, float, float]
"""Column and row of the centre, and the radius."""


def _place(rng: np.random.Generator, anatomy: Anatomy, occupied: list[Circle], radius: float) -> Point:
    """Return a position in the field outside the disc and existing lesions."""
    x = y = 0.0
    for _ in range(60):
        dx, dy = unit(float(rng.random()))
        away = 0.84 * RADIUS * float(rng.random()) ** 0.5
        x, y = away * dx, away * dy
        disc = (x - anatomy.disc[0]) ** 2 + (y - anatomy.disc[1]) ** 2
        apart = all((x - a) ** 2 + (y - b) ** 2 > (radius + r + 0.015) ** 2 for a, b, r in occupied)
        if disc > (1.35 * DISC + radius) ** 2 and apart:
            break
    occupied.append((x, y, radius))
    return x, y


def draw_lesions(rng: np.random.Generator, fundus: Fundus, counts: Mapping[str, int]) -> float:
    """Draw the counted lesions, in place, and return the contrast of the red ones."""
    occupied: list[Circle] = []
    contrast = float(rng.uniform(0.75, 1.05))
    for _ in range(counts["exudates"]):
        _exudate(rng, fundus, occupied)
    for _ in range(counts["haemorrhages"]):
        radius = float(rng.uniform(0.055, 0.095))
        x, y = _place(rng, fundus.anatomy, occupied, radius)
        near = fundus.where.around(x, y, radius * 2.0)
        shape = blob(near, x, y, radius, stretch=float(rng.uniform(1.0, 1.9)), turn=unit(float(rng.random())))
        ragged = as_field(shape + 0.28 * noise(rng, shape.shape, 5))
        _red(fundus, near, ragged, contrast * float(rng.uniform(0.85, 1.05)), 0.35)
    for _ in range(counts["microaneurysms"]):
        radius = float(rng.uniform(0.022, 0.032))
        x, y = _place(rng, fundus.anatomy, occupied, radius)
        near = fundus.where.around(x, y, radius * 2.4)
        _red(fundus, near, blob(near, x, y, radius), contrast * float(rng.uniform(0.8, 1.05)), 0.6)
    if counts["neovascularisation"]:
        _new_vessels(rng, fundus)
    return contrast


def _red(fundus: Fundus, near: Plane, shape: Field, strength: float, soft: float) -> None:
    alpha = smoothstep(shape, -0.5 * soft, soft)
    scale(fundus.picture[near.window], as_field(alpha * min(1.0, strength)), (0.62, 0.26, 0.4))
    _mark(fundus, near, smoothstep(shape, -0.2, 0.2))


def _mark(fundus: Fundus, near: Plane, alpha: Field) -> None:
    part = fundus.mask[near.window]
    np.maximum(part, alpha, out=part)


def _exudate(rng: np.random.Generator, fundus: Fundus, used: list[Circle]) -> None:
    """Draw a hard exudate: yellow, sharp, usually near the previous one."""
    radius = 0.012 * 3.0 ** float(rng.random())
    if used and rng.random() < 0.7:
        dx, dy = unit(float(rng.random()))
        away = float(rng.uniform(0.03, 0.11))
        x, y = used[-1][0] + away * dx, used[-1][1] + away * dy
        if x * x + y * y > (0.85 * RADIUS) ** 2:
            return
        used.append((x, y, radius))
    else:
        x, y = _place(rng, fundus.anatomy, used, radius)
    near = fundus.where.around(x, y, radius * 2.2)
    shape = blob(near, x, y, radius, stretch=float(rng.uniform(1.0, 1.8)), turn=unit(float(rng.random())))
    alpha = smoothstep(as_field(shape + 0.25 * noise(rng, shape.shape, 4)), -0.1, 0.3)
    mix(fundus.picture[near.window], as_field(alpha * float(rng.uniform(0.45, 0.85))), (246.0, 216.0, 120.0))
    _mark(fundus, near, alpha)


def _new_vessels(rng: np.random.Generator, fundus: Fundus) -> None:
    """Draw a tangle of fine new vessels at the disc or on a great vessel."""
    inside = [p for p in fundus.trunks if p[0] ** 2 + p[1] ** 2 < (0.7 * RADIUS) ** 2]
    at_disc = not inside or rng.random() < 0.4
    middle = fundus.anatomy.disc if at_disc else inside[int(rng.integers(len(inside)))]
    reach = float(rng.uniform(0.12, 0.22))
    canvas = Canvas(fundus.where.size)
    for _ in range(int(rng.integers(12, 24))):
        heading = unit(float(rng.random()))
        line = wander(
            rng, middle, heading, step=reach * 0.11, count=int(rng.integers(7, 15)), bend=0.45,
            drift=float(rng.normal(0.0, 0.2)),
        )  # fmt: skip
        canvas.line(line, float(rng.uniform(0.007, 0.013)), float(rng.uniform(0.7, 1.0)))
    web = canvas.field()
    scale(fundus.picture, as_field(web * float(rng.uniform(0.6, 0.9))), (0.74, 0.36, 0.42))
    near = fundus.where.around(*middle, reach)
    _mark(fundus, near, smoothstep(blob(near, *middle, reach * 0.8), -0.05, 0.05))


def draw_harmless(rng: np.random.Generator, fundus: Fundus) -> dict[str, Json]:
    """Draw drusen, specks of pigment and dust, in place, and return their numbers."""
    occupied: list[Circle] = []
    drusen = int(rng.integers(1, 16)) if rng.random() < 0.3 else 0
    for _ in range(drusen):
        radius = float(rng.uniform(0.01, 0.026))
        x, y = _place(rng, fundus.anatomy, occupied, radius)
        near = fundus.where.around(x, y, radius * 2.0)
        alpha = smoothstep(blob(near, x, y, radius), -0.4, 0.9)
        mix(fundus.picture[near.window], as_field(alpha * float(rng.uniform(0.12, 0.4))), (238.0, 200.0, 130.0))
    specks = int(rng.integers(1, 4)) if rng.random() < 0.3 else 0
    for _ in range(specks):
        # Brown or grey, while microaneurysms are red.
        radius = float(rng.uniform(0.012, 0.04))
        x, y = _place(rng, fundus.anatomy, occupied, radius)
        near = fundus.where.around(x, y, radius * 2.0)
        alpha = smoothstep(blob(near, x, y, radius), -0.4, 0.8)
        even = float(rng.uniform(0.55, 0.8))
        scale(fundus.picture[near.window], as_field(alpha * float(rng.uniform(0.3, 0.6))), (even, even * 0.95, even))
    return {"drusen": drusen, "specks": specks}
