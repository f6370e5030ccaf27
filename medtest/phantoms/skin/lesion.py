"""Lesions drawn from their signs: outline, border, colours and structures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtest.phantoms.drawing import Canvas, Plane, blob, mix, noise, scale, unit, wander
from medtest.phantoms.fields import Field, Point, as_field, ellipse_radius, smoothstep
from medtest.phantoms.skin.abcd import Signs

TONES: dict[str, tuple[float, float, float]] = {
    "light_brown": (178.0, 118.0, 84.0),
    "dark_brown": (104.0, 58.0, 42.0),
    "black": (44.0, 30.0, 34.0),
    "red": (192.0, 74.0, 76.0),
    "blue_grey": (104.0, 108.0, 132.0),
    "white": (226.0, 206.0, 200.0),
}
"""Grey levels of the six colours."""


@dataclass(frozen=True, kw_only=True)
class LesionOutline:
    """Position and edge of the lesion.

    Attributes:
        x: Column of its centre, in half sides of the picture.
        y: Row of its centre.
        radius: Mean radius in the same units.
        stretch: Factor by which it is narrower across its axis.
        turn: Unit vector of its axis.
        weights: Harmonics of the edge: cosines keep the symmetry to the axis, even ones also that across it.
        contrast: Darkness against the skin, 0 to 1.
    """

    x: float
    y: float
    radius: float
    stretch: float
    turn: Point
    weights: tuple[Point, ...]
    contrast: float


def draw_outline(rng: np.random.Generator, signs: Signs) -> LesionOutline:
    """Draw an outline with the asymmetry of the signs."""
    amounts = rng.normal(0.0, 1.0, (6, 2))
    weights: list[Point] = []
    for k, (a, b) in enumerate(amounts):
        order = k + 2
        keep_a = signs.asymmetry >= 1 or order % 2 == 0
        keep_b = signs.asymmetry == 2
        amount = (0.045, 0.075, 0.08)[signs.asymmetry] / (1.0 + 0.25 * k)
        weights.append((float(a) * amount if keep_a else 0.0, float(b) * amount if keep_b else 0.0))
    x, y = (float(v) for v in rng.normal(0.0, 0.09, 2))
    return LesionOutline(
        x=min(0.25, max(-0.25, x)),
        y=min(0.25, max(-0.25, y)),
        radius=0.25 * 2.5 ** float(rng.random()),
        stretch=float(rng.uniform(1.0, 1.45)),
        turn=unit(float(rng.random())),
        weights=tuple(weights),
        contrast=float(rng.uniform(0.5, 1.0)),
    )


def _border(c: Field, s: Field, abrupt: tuple[bool, ...]) -> Field:
    """Return the width of the border's transition in each direction: narrow in abrupt segments."""
    total = np.full(c.shape, 1e-3, np.float32)
    width = np.zeros(c.shape, np.float32)
    for k, sharp in enumerate(abrupt):
        dx, dy = unit((k + 0.5) / 8.0)
        near = np.clip(c * np.float32(dx) + s * np.float32(dy) - np.float32(0.80), 0.0, 1.0)
        near = near * near
        total += near
        width += near * np.float32(0.1 if sharp else 0.6)
    return as_field((width + np.float32(2e-4)) / total)


def paint(rng: np.random.Generator, picture: Field, where: Plane, outline: LesionOutline, signs: Signs) -> Field:
    """Draw the lesion into h×w×3 grey levels, in place; return its amount at each pixel."""
    shape = blob(
        where, outline.x, outline.y, outline.radius,
        stretch=outline.stretch, turn=outline.turn, weights=outline.weights,
    )  # fmt: skip
    _, c, s = ellipse_radius(where.x, where.y, (outline.x, outline.y), turn=outline.turn, stretch=outline.stretch)
    ragged = as_field(shape + 0.05 * noise(rng, shape.shape, 26) + 0.03 * noise(rng, shape.shape, 60))
    width = _border(c, s, signs.border)
    alpha = smoothstep(as_field(ragged / width), -0.5, 0.5)
    colour = _colours(rng, shape, c, s, signs)
    _structures(rng, colour, where, shape, outline, signs)
    mottle = 1.0 + 0.05 * noise(rng, shape.shape, 40) + 0.05 * noise(rng, shape.shape, 12)
    colour *= mottle[..., None]
    cover = as_field(alpha * (0.45 + 0.5 * outline.contrast))
    picture += cover[..., None] * (colour - picture)
    return alpha


def _colours(rng: np.random.Generator, shape: Field, c: Field, s: Field, signs: Signs) -> Field:
    """Return the colour at each pixel: rings in a symmetric lesion, off-centre patches in others."""
    names = list(signs.colours)
    order = [names[i] for i in rng.permutation(len(names))]
    if "light_brown" in order or "dark_brown" in order:
        # Brown is the base colour; other colours are patches in it.
        first = "light_brown" if "light_brown" in order else "dark_brown"
        order.remove(first)
        order.insert(0, first)
    colour = np.empty((*shape.shape, 3), np.float32)
    jitter = 1.0 + 0.06 * rng.uniform(-1.0, 1.0, (len(order), 3))
    colour[...] = np.array(TONES[order[0]], np.float32) * jitter[0].astype(np.float32)
    distance = as_field(1.0 - shape)
    for number, name in enumerate(order[1:], 1):
        wavy = noise(rng, shape.shape, 9) * np.float32(0.16)
        if signs.asymmetry == 0:
            ring = float(rng.uniform(0.0, 0.75))
            half = float(rng.uniform(0.16, 0.3))
            level = as_field(half - np.abs(distance - np.float32(ring)) + 0.6 * wavy)
        else:
            # On the axis if one axis is symmetric, anywhere otherwise.
            dx, dy = (1.0 if rng.random() < 0.5 else -1.0, 0.0) if signs.asymmetry == 1 else unit(float(rng.random()))
            away = float(rng.uniform(0.2, 0.75))
            along = distance * c - np.float32(away * dx)
            across = distance * s - np.float32(away * dy)
            level = as_field(float(rng.uniform(0.3, 0.5)) - np.sqrt(along * along + across * across) + wavy)
        alpha = as_field(smoothstep(level, -0.05, 0.2) * float(rng.uniform(0.55, 0.95)))
        tone = [float(v) * float(j) for v, j in zip(TONES[name], jitter[number], strict=True)]
        mix(colour, alpha, tone)
    return colour


def _structures(
    rng: np.random.Generator, colour: Field, where: Plane, shape: Field, outline: LesionOutline, signs: Signs
) -> None:
    """Draw pigment network, structureless area, streaks, dots and globules into the lesion's colour."""
    if "network" in signs.structures:
        cells = round(float(rng.uniform(30, 44)))
        lines = 1.0 - np.clip(np.abs(noise(rng, shape.shape, cells)) * np.float32(2.6), 0.0, 1.0)
        patch = smoothstep(as_field(noise(rng, shape.shape, 4) + 0.9), -0.3, 0.6)
        net = as_field(lines * patch * float(rng.uniform(0.5, 0.9)))
        scale(colour, net, (0.66, 0.58, 0.56))
    if "structureless" in signs.structures:
        dx, dy = unit(float(rng.random()))
        away = outline.radius * float(rng.uniform(0.0, 0.5))
        area = smoothstep(
            blob(where, outline.x + away * dx, outline.y + away * dy, outline.radius * float(rng.uniform(0.4, 0.6))),
            -0.1, 0.3,
        )  # fmt: skip
        mean = colour[shape > 0.1].mean(axis=0, dtype=np.float64) if bool((shape > 0.1).any()) else colour[0, 0]
        mix(colour, as_field(area * 0.75), [float(round(float(v), 3)) * 1.05 for v in mean])
    marks = [name for name in ("streaks", "dots", "globules") if name in signs.structures]
    if not marks:
        return
    canvas = Canvas(where.size)
    for name in marks:
        _marks(rng, canvas, outline, name)
    scale(colour, as_field(canvas.field() * float(rng.uniform(0.65, 0.95))), (0.42, 0.36, 0.38))


def _marks(rng: np.random.Generator, canvas: Canvas, outline: LesionOutline, name: str) -> None:
    radius, cx, cy = outline.radius, outline.x, outline.y
    counts = {"streaks": rng.integers(9, 22), "dots": rng.integers(14, 40), "globules": rng.integers(8, 22)}
    for _ in range(int(counts[name])):
        heading = unit(float(rng.random()))
        if name == "streaks":
            away = radius * float(rng.uniform(0.62, 0.8))
            start = (cx + away * heading[0], cy + away * heading[1] / outline.stretch**0.5)
            line = wander(rng, start, heading, step=radius * 0.07, count=int(rng.integers(4, 7)), bend=0.15)
            canvas.line(line, radius * 0.055, float(rng.uniform(0.6, 1.0)))
            continue
        away = radius * 0.85 * float(rng.random()) ** 0.5
        size = radius * float(rng.uniform(0.016, 0.028) if name == "dots" else rng.uniform(0.045, 0.075))
        x, y = cx + away * heading[0], cy + away * heading[1] / outline.stretch
        canvas.disc(x, y, size, float(rng.uniform(0.6, 1.0)))
