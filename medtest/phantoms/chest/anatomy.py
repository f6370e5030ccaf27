"""The chest from the front: body, lungs, heart, ribs, vessels, as attenuation from 0 (air) to about 1 (white).

Units are half sides of the picture before its zoom; 0.05 units are one centimetre. Side -1 is the left of the
picture, the patient's right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.drawing import Canvas, Plane, Points, blob, curve, noise, soften, unit, wander
from medtest.phantoms.fields import Field, Point, as_field, smoothstep

CM = 0.05
"""One centimetre."""
WALL = 0.70
"""Inner half width of the thorax."""
Line: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Build:
    """Build and position of a patient.

    Attributes:
        zoom: Size of the patient in the picture.
        shift: Position of the centre, in half sides of the picture.
        girth: Relative width of the thorax, usually 1.
        dome: Height of the right and the left half of the diaphragm, y of its top.
        flat: Flatness of the diaphragm, 0 to 1.
        heart: Width of the heart over the inner width of the thorax.
        lean: Displacement of heart and mediastinum from the centre.
        lucency: Extra darkness of the lungs.
        markings: Relative strength of the lungs' vessels, usually 1.
        breasts: Density of breast shadows, 0 for none.
        portable: Whether it looks like a film taken in bed: less contrast, a higher diaphragm.
    """

    zoom: float
    shift: Point
    girth: float
    dome: tuple[float, float]
    flat: float
    heart: float
    lean: float
    lucency: float
    markings: float
    breasts: float
    portable: bool


def draw_build(rng: np.random.Generator) -> Build:
    """Draw a healthy patient."""
    portable = bool(rng.random() < 0.3)
    low = float(rng.uniform(0.2, 0.31)) - (0.05 if portable else 0.0)
    x, y = (float(v) for v in rng.uniform(-0.05, 0.05, 2))
    return Build(
        zoom=float(rng.uniform(0.9, 1.1)),
        shift=(x, y),
        girth=float(rng.uniform(0.92, 1.06)),
        dome=(low, low + float(rng.uniform(0.0, 0.06))),
        flat=float(rng.uniform(0.0, 0.3)),
        heart=float(rng.uniform(0.38, 0.49)),
        lean=float(rng.normal(0.0, 0.008)),
        lucency=float(rng.uniform(-0.03, 0.05)),
        markings=float(rng.uniform(0.75, 1.25)),
        breasts=float(rng.uniform(0.02, 0.09)) if rng.random() < 0.4 else 0.0,
        portable=portable,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Chest:
    """Drawn parts on which findings depend.

    Attributes:
        where: The picture's plane.
        build: The patient.
        outlines: The outline of each lung, by its side.
        lung: Amount of lung at each pixel, by side.
        heart: Amount of heart at each pixel.
    """

    where: Plane
    build: Build
    outlines: dict[int, Line]
    lung: dict[int, Field]
    heart: Field

    @property
    def lungs(self) -> Field:
        """Amount of either lung at each pixel."""
        return as_field(np.maximum(self.lung[-1], self.lung[1]))


def lung_outline(build: Build, side: int) -> Line:
    """Return the closed outline of a lung: up the mediastinum, over the apex, down the wall, along the diaphragm."""
    dome = build.dome[0 if side < 0 else 1]
    wide = build.girth
    base = 0.44
    flat = build.flat
    low = dome + 0.10
    points = [
        (0.10, 0.05), (0.115, -0.25), (0.11, -0.52), (0.16, -0.71), (0.27, -0.79), (0.41, -0.72), (0.53, -0.52),
        (0.625, -0.25), (0.675, 0.0), (0.70, 0.22), (0.705, base),
        (0.60, low + (base - low) * (0.30 + 0.4 * flat)),
        (0.46, dome + flat * 0.05), (0.30, dome + 0.02 + flat * 0.03), (0.16, dome + 0.08), (0.10, dome + 0.08),
    ]  # fmt: skip
    return curve([(side * x * wide, y) for x, y in points], 6, closed=True)


def _heart(build: Build) -> Line:
    width = build.heart * 2.0 * WALL * build.girth
    right, left = 0.34 * width - build.lean, 0.66 * width + build.lean
    bottom = max(build.dome) + 0.1
    points = [
        (0.02, -0.36), (-0.09, -0.24), (-0.6 * right, -0.1), (-right, 0.08), (-0.9 * right, 0.24),
        (-0.4 * right, bottom), (0.35 * left, bottom + 0.03), (0.86 * left, bottom - 0.02), (left, 0.20),
        (0.86 * left, 0.04), (0.55 * left, -0.12), (0.13, -0.24), (0.105, -0.33),
    ]  # fmt: skip
    return curve(points, 6, closed=True)


def build_chest(where: Plane, build: Build) -> Chest:
    """Draw the parts whose positions later steps need."""
    outlines = {side: lung_outline(build, side) for side in (-1, 1)}
    lung = {side: _filled(where, 0.018, line) for side, line in outlines.items()}
    return Chest(where=where, build=build, outlines=outlines, lung=lung, heart=_filled(where, 0.02, _heart(build)))


def _filled(where: Plane, softness: float, *outlines: Points) -> Field:
    """Return filled outlines with soft edges."""
    canvas = Canvas.over(where)
    for outline in outlines:
        canvas.polygon(outline)
    return soften(canvas.field(), softness, where.size)


def attenuation(rng: np.random.Generator, chest: Chest, air: Field) -> Field:
    """Return the attenuation of everything but bones and the lungs' vessels.

    Args:
        rng: The stream of soft tissue.
        chest: The drawn parts.
        air: float32 h×w, fraction of air in the lung, 1 if healthy.
    """
    where, build = chest.where, chest.build
    half = [
        (0.16, -1.3), (0.17, -0.98), (0.32, -0.9), (0.72, -0.81), (0.98, -0.68), (1.25, -0.5), (1.25, -0.05),
        (0.95, -0.12), (0.87, 0.1), (0.85, 0.5), (0.9, 1.4),
    ]  # fmt: skip
    wide = 0.5 + 0.5 * build.girth
    skin = _filled(where, 0.05, [(x * wide, y) for x, y in half] + [(-x * wide, y) for x, y in reversed(half)])
    total = as_field(skin * (0.72 - 0.16 * where.x * where.x + 0.03 * noise(rng, where.shape, 4)))
    below = soften(as_field(np.clip(where.y * 6.0 - 1.6, 0.0, 1.0) * np.ones_like(skin)), 0.03, where.size)
    total += 0.1 * below * skin
    column = smoothstep(as_field(1.0 - np.abs(where.x - np.float32(build.lean)) * np.float32(1.0 / 0.26)), 0.0, 0.9)
    total += (0.08 - 0.035 * below) * column * skin
    depth = 0.44 + build.lucency
    lungs = as_field(chest.lungs * (1.0 - 0.86 * chest.heart))
    total -= lungs * air * np.float32(depth)
    total += 0.05 * chest.heart
    _airways(rng, total, chest)
    _stomach(rng, total, chest)
    if build.breasts:
        _breasts(rng, total, chest)
    return total


def _airways(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    """Draw trachea, main bronchi and the knob of the aorta, in place."""
    lean = chest.build.lean
    canvas = Canvas.over(chest.where)
    fork = (lean + 0.005, -0.28)
    canvas.line(curve([(lean * 0.3, -1.1), (lean, -0.6), fork]), 0.075)
    for side in (-1.0, 1.0):
        canvas.line([fork, (lean + side * 0.13, -0.14 - 0.02 * side)], 0.045, 0.7)
    total -= 0.13 * soften(canvas.field(), 0.016, chest.where.size)
    knob = smoothstep(blob(chest.where, 0.095 + lean, -0.36, float(rng.uniform(0.075, 0.105))), -0.15, 0.2)
    total += 0.2 * knob * chest.lung[1]


def _stomach(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    """Draw gas in the stomach, under the left half of the diaphragm, in most patients; in place."""
    x, y = float(rng.uniform(0.28, 0.46)), chest.build.dome[1] + float(rng.uniform(0.12, 0.2))
    if rng.random() > 0.55:
        return
    shape = blob(chest.where, x, y, float(rng.uniform(0.06, 0.13)), stretch=float(rng.uniform(1.2, 2.0)))
    gas = smoothstep(as_field(shape + 0.25 * noise(rng, shape.shape, 8)), -0.1, 0.4)
    total -= float(rng.uniform(0.1, 0.3)) * gas * (1.0 - chest.lung[1])


def _breasts(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    for side in (-1.0, 1.0):
        shape = blob(
            chest.where, side * float(rng.uniform(0.42, 0.5)), float(rng.uniform(0.12, 0.24)), 0.34, stretch=1.1
        )
        lower = np.clip(chest.where.y * 2.2 + 0.6, 0.0, 1.0)
        total += chest.build.breasts * smoothstep(shape, -0.05, 0.4) * lower


def draw_bones(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    """Draw ribs, collar bones, shoulder blades and spine, in place."""
    where, wide = chest.where, chest.build.girth
    inside = _filled(where, 0.03, *(line * np.array([1.05, 1.03]) for line in chest.outlines.values()))
    bone = float(rng.uniform(0.07, 0.12))
    gap, start = float(rng.uniform(0.118, 0.132)), float(rng.uniform(-0.76, -0.7))
    for front in (False, True):
        outer, core = Canvas.over(where), Canvas.over(where)
        for side in (-1.0, 1.0):
            for k in range(9 if not front else 6):
                y = start + gap * k + (0.12 if front else 0.0)
                points = _rib(y, k, front)
                line = curve([(side * x * wide, v + float(rng.normal(0.0, 0.003))) for x, v in points], 6)
                outer.line(line, 0.05 if not front else 0.055)
                core.line(line, 0.03)
        shade = outer.field() - np.float32(0.4) * core.field()
        total += bone * (0.55 if front else 1.0) * inside * shade
    canvas = Canvas.over(where)
    lift = float(rng.normal(0.0, 0.03))
    for side in (-1.0, 1.0):
        points = [(0.07, -0.58), (0.28, -0.66 - lift), (0.52, -0.68 - lift), (0.85, -0.77 - lift)]
        canvas.line(curve([(side * x * wide, y + side * 0.3 * lift) for x, y in points]), 0.05)
    total += 0.1 * soften(canvas.field(), 1.2 / where.size, where.size)
    blades = []
    for side in (-1.0, 1.0):
        off = float(rng.uniform(0.0, 0.14))
        points = [(0.60 + off, -0.62), (0.78 + off, -0.6), (0.95, -0.45), (0.82 + off, -0.02), (0.70 + off, -0.16)]
        blades.append(curve([(side * x, y) for x, y in points], closed=True))
    total += 0.055 * _filled(where, 0.014, *blades)
    _spine(rng, total, chest)


def _rib(y: float, k: int, front: bool) -> list[Point]:
    """Return points of one rib of the side x > 0, the upper ones bent more."""
    if front:
        return [(0.74, y - 0.02), (0.66, y + 0.08), (0.52, y + 0.17), (0.36, y + 0.2), (0.24, y + 0.17)]
    drop = 0.10 + 0.018 * k
    reach = (0.40, 0.55, 0.64, 0.70, 0.73, 0.75, 0.75, 0.75, 0.75)[k]
    return [
        (0.05, y + 0.02), (0.35 * reach, y - 0.03), (0.68 * reach, y - 0.01), (0.9 * reach, y + 0.45 * drop),
        (reach, y + drop), (reach - 0.01, y + drop + 0.06),
    ]  # fmt: skip


def _spine(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    where = chest.where
    x = np.abs(where.x)
    column = smoothstep(as_field(0.075 - x), 0.0, 0.02)
    teeth = where.y * np.float32(1.0 / 0.105) + np.float32(float(rng.random()))
    gaps = np.clip(np.abs((teeth - np.floor(teeth)) - 0.5) * 10.0 - 4.0, 0.0, 1.0)
    total += column * (0.035 - 0.03 * gaps)


def draw_markings(rng: np.random.Generator, chest: Chest) -> Field:
    """Return the lungs' vessels, float32 h×w in [0, 1], denser near the hila."""
    canvas = Canvas.over(chest.where)
    for side in (-1, 1):
        hilum = (side * 0.165 + chest.build.lean, -0.06 - 0.02 * side)
        canvas.disc(hilum[0], hilum[1], 0.035, 0.55)
        for k in range(11):
            c, s = unit(-0.25 + 0.5 * (k + float(rng.random())) / 11.0)
            width = float(rng.uniform(0.015, 0.028))
            line = wander(rng, hilum, (side * c, s), step=0.048, count=int(rng.integers(7, 14)), bend=0.08)
            third = len(line) // 3
            for piece in range(3):
                part = line[piece * third : (piece + 1) * third + 1]
                canvas.line(part, width * (1.0 - 0.26 * piece), 0.75 - 0.17 * piece)
            for place in range(2, len(line) - 1, 2):
                _twig(rng, canvas, line, place, width * (0.6 - 0.025 * place))
    return soften(canvas.field(), 0.008, chest.where.size)


def _twig(rng: np.random.Generator, canvas: Canvas, line: Line, place: int, width: float) -> None:
    """Draw one branch of a vessel."""
    dx, dy = (float(v) for v in line[place + 1] - line[place])
    lean = float(rng.uniform(0.3, 0.8)) * (1.0 if rng.random() < 0.5 else -1.0)
    hx, hy = dx - lean * dy, dy + lean * dx
    length = (hx * hx + hy * hy) ** 0.5
    start = (float(line[place][0]), float(line[place][1]))
    own = wander(rng, start, (hx / length, hy / length), step=0.04, count=int(rng.integers(3, 7)), bend=0.12)
    canvas.line(own, width, 0.62 - 0.03 * place)


def raise_dome(build: Build, side: int, by: float) -> Build:
    """Return a build with one half of the diaphragm higher."""
    right, left = build.dome
    return replace(build, dome=(right - by, left) if side < 0 else (right, left - by))
