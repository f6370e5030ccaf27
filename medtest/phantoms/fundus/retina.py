"""The healthy retina: background, optic disc, macula and the vessel tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.drawing import Canvas, Plane, blob, mix, noise, scale, soften, wander
from medtest.phantoms.fields import Field, Point, as_field, smoothstep

Line: TypeAlias = NDArray[np.float64]
RADIUS = 0.94
"""Radius of the field of view, in half sides of the picture: 22.5 degrees."""
DISC = 0.125
"""Radius of the optic disc in the same units: an optic disc of 1.7 mm seen in a field of 45 degrees (13 mm)."""


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """Positions of structures, in half sides of the picture.

    Attributes:
        disc: Centre of the optic disc.
        fovea: Centre of the macula, 2.5 disc diameters away.
        side: -1 for a disc on the left, 1 on the right.
        pigment: Darkness of the retina, 0 to 1.
    """

    disc: Point
    fovea: Point
    side: int
    pigment: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Fundus:
    """Photograph being drawn.

    Attributes:
        where: The picture's plane.
        anatomy: Positions of disc and macula.
        picture: float32 h×w×3, grey levels.
        mask: float32 h×w in [0, 1], amount of lesion at each pixel.
        trunks: Points on great vessels, from which new vessels may grow.
    """

    where: Plane
    anatomy: Anatomy
    picture: Field
    mask: Field
    trunks: list[Point] = field(default_factory=list)


def draw_anatomy(rng: np.random.Generator) -> Anatomy:
    """Draw the positions of disc and macula."""
    side = 1 if rng.random() < 0.5 else -1
    x = float(rng.uniform(0.42, 0.66))
    y = float(rng.uniform(-0.1, 0.08))
    gap = float(rng.uniform(0.58, 0.66))
    return Anatomy(
        disc=(side * x, y),
        fovea=(side * (x - gap), y + float(rng.uniform(0.0, 0.09))),
        side=side,
        pigment=float(rng.random()),
    )


def background(rng: np.random.Generator, where: Plane, anatomy: Anatomy) -> Field:
    """Return retina without vessels as h×w×3 grey levels."""
    shape = where.shape
    dark = anatomy.pigment
    base = (206.0 - 62.0 * dark, 112.0 - 46.0 * dark, 50.0 - 22.0 * dark)
    hue = rng.uniform(-1.0, 1.0, 2)
    tone = (base[0], base[1] + 13.0 * float(hue[0]), max(8.0, base[2] + 14.0 * float(hue[1])))
    square = where.x * where.x + where.y * where.y
    dx, dy = (float(v) for v in rng.normal(0.0, 0.1, 2))
    light = 1.06 - float(rng.uniform(0.18, 0.45)) * square + np.float32(dx) * where.x + np.float32(dy) * where.y
    choroid = noise(rng, shape, 26) * noise(rng, shape, 9) * np.float32(float(rng.uniform(0.0, 0.09)))
    broad = noise(rng, shape, 6) * np.float32(0.04)
    fine = noise(rng, shape, 110, smooth=False) * np.float32(float(rng.uniform(0.008, 0.025)))
    picture = np.empty((*shape, 3), np.float32)
    for channel, much in enumerate((0.5, 1.0, 0.8)):
        picture[..., channel] = tone[channel] * (light + np.float32(much) * (choroid + broad) + fine)
    macula = blob(where, *anatomy.fovea, float(rng.uniform(0.2, 0.3)))
    deep = float(rng.uniform(0.15, 0.4))
    hollow = smoothstep(macula, 0.0, 1.0)
    scale(picture, as_field(hollow * deep), (0.6, 0.25, 0.3))
    return picture


def draw_disc(rng: np.random.Generator, fundus: Fundus) -> None:
    """Draw the optic disc with its cup, in place."""
    x, y = fundus.anatomy.disc
    radius = DISC * float(rng.uniform(0.92, 1.12))
    near = fundus.where.around(x, y, radius * 2.4)
    shape = blob(near, x, y, radius, stretch=float(rng.uniform(0.88, 1.02)), turn=(1.0, 0.0))
    part = fundus.picture[near.window]
    halo = smoothstep(shape, -1.0, 0.1)
    mix(part, as_field(halo * float(rng.uniform(0.05, 0.22))), (236.0, 150.0, 84.0))
    glow = float(rng.uniform(0.6, 0.9))
    mix(part, as_field(smoothstep(shape, -0.08, 0.14) * glow), (250.0, 206.0, 128.0))
    cup = blob(near, x - 0.15 * radius * fundus.anatomy.side, y, radius * float(rng.uniform(0.35, 0.6)))
    mix(part, as_field(smoothstep(cup, -0.2, 0.4) * 0.6), (255.0, 240.0, 190.0))


def draw_vessels(rng: np.random.Generator, fundus: Fundus) -> None:
    """Draw veins and then arteries from the disc around the macula, in place; add points on the great ones."""
    size = fundus.where.size
    wide = float(rng.uniform(0.85, 1.15))
    for kind, width, factors in (("vein", 0.030, (0.72, 0.42, 0.5)), ("artery", 0.021, (0.86, 0.56, 0.55))):
        canvas = Canvas(size)
        for up in (-1.0, 1.0):
            line = _arcade(rng, canvas, fundus.anatomy, up, width * wide, shift=0.02 if kind == "vein" else -0.02)
            fundus.trunks.extend((float(px), float(py)) for px, py in line[3:24:2])
            _nasal(rng, canvas, fundus.anatomy, up, width * wide * 0.62)
        lines = soften(canvas.field(), 1.5 / size, size)
        scale(fundus.picture, as_field(lines * float(rng.uniform(0.7, 0.95))), factors)
        if kind == "artery":
            reflex = smoothstep(lines, 0.75, 1.0)
            mix(fundus.picture, as_field(reflex * 0.12), (250.0, 190.0, 140.0))


def _arcade(rng: np.random.Generator, canvas: Canvas, anatomy: Anatomy, up: float, width: float, shift: float) -> Line:
    """Draw and return one great vessel: out of the disc, around the macula, towards the far rim."""
    x, y = anatomy.disc[0] + shift * anatomy.side, anatomy.disc[1]
    away = -float(anatomy.side)
    heading = _unit(0.35 * away, up)
    turn = 0.062 * up * -away
    line = wander(rng, (x, y), heading, step=0.055, count=30, bend=0.06, drift=turn)
    _taper(canvas, line, width, 0.45)
    for k in range(3, 27, 2):
        if rng.random() < 0.65:
            inward = -1.0 if rng.random() < 0.5 else 1.0
            _branch(rng, canvas, line, k, inward, width * (1.0 - 0.5 * k / 30) * 0.62, 2)
    return line


def _nasal(rng: np.random.Generator, canvas: Canvas, anatomy: Anatomy, up: float, width: float) -> None:
    heading = _unit(float(anatomy.side), up * float(rng.uniform(0.35, 1.1)))
    line = wander(rng, anatomy.disc, heading, step=0.05, count=14, bend=0.09, drift=-0.02 * up * anatomy.side)
    _taper(canvas, line, width, 0.4)
    for k in range(3, 13, 3):
        _branch(rng, canvas, line, k, 1.0 if rng.random() < 0.5 else -1.0, width * 0.55, 1)


def _branch(
    rng: np.random.Generator, canvas: Canvas, line: Line, k: int, inward: float, width: float, depth: int
) -> None:
    x, y = (float(v) for v in line[k])
    dx, dy = (float(v) for v in line[k] - line[k - 1])
    lean = inward * float(rng.uniform(0.5, 1.1))
    heading = _unit(dx - lean * dy, dy + lean * dx)
    count = int(rng.integers(6, 14))
    own = wander(rng, (x, y), heading, step=0.036, count=count, bend=0.14, drift=-0.05 * inward)
    _taper(canvas, own, width, 0.5, 2)
    if depth > 1:
        for _ in range(2):
            place = int(rng.integers(2, count))
            _branch(rng, canvas, own, place, 1.0 if rng.random() < 0.5 else -1.0, width * 0.6, depth - 1)


def _taper(canvas: Canvas, line: Line, width: float, end: float, pieces: int = 4) -> None:
    """Draw a line that narrows from piece to piece."""
    for k in range(pieces):
        first, last = k * (len(line) - 1) // pieces, (k + 1) * (len(line) - 1) // pieces
        canvas.line(line[first : last + 1], width * (1.0 - (1.0 - end) * k / (pieces - 1)))


def _unit(x: float, y: float) -> Point:
    length = (x * x + y * y) ** 0.5
    return x / length, y / length
