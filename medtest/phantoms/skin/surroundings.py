"""Skin around the lesion and objects over it: hair, a ruler, gel bubbles, the dark rim of the dermatoscope."""

from __future__ import annotations

import numpy as np

from medtest.core.cases import Json
from medtest.phantoms.drawing import Canvas, Plane, blob, mix, noise, scale, unit, wander
from medtest.phantoms.fields import Field, as_field, pick, smoothstep

TONES: dict[str, tuple[tuple[float, float, float], float]] = {
    "pink": ((226.0, 142.0, 146.0), 0.26),
    "salmon": ((226.0, 152.0, 132.0), 0.2),
    "fair": ((226.0, 204.0, 194.0), 0.2),
    "lilac": ((206.0, 172.0, 184.0), 0.14),
    "beige": ((206.0, 176.0, 146.0), 0.12),
    "tan": ((178.0, 128.0, 104.0), 0.08),
}
"""Grey levels of skin under the dermatoscope, and weight; from dermoscopic pictures."""


def draw_skin(rng: np.random.Generator, where: Plane) -> tuple[Field, str]:
    """Return skin as h×w×3 grey levels, and the name of its tone."""
    name = pick(rng, {tone: weight for tone, (_, weight) in TONES.items()})
    base = np.array(TONES[name][0], np.float32) + rng.uniform(-12.0, 12.0, 3).astype(np.float32)
    shape = where.shape
    broad = noise(rng, shape, 4) * np.float32(float(rng.uniform(0.01, 0.045)))
    patchy = noise(rng, shape, 16) * np.float32(float(rng.uniform(0.0, 0.045)))
    fine = noise(rng, shape, 70, smooth=False) * np.float32(float(rng.uniform(0.0, 0.025)))
    dx, dy = unit(float(rng.random()))
    slope = (where.x * np.float32(dx) + where.y * np.float32(dy)) * np.float32(float(rng.uniform(0.0, 0.09)))
    light = as_field(1.0 + broad + fine + slope)
    picture = np.empty((*shape, 3), np.float32)
    for channel, red in enumerate((0.25, 1.0, 0.9)):
        picture[..., channel] = base[channel] * (light + np.float32(red) * patchy)
    if rng.random() < 0.35:
        _vessels(rng, picture, where)
    if rng.random() < 0.35:
        _freckles(rng, picture, where)
    return picture, name


def _vessels(rng: np.random.Generator, picture: Field, where: Plane) -> None:
    canvas = Canvas(where.size)
    for _ in range(int(rng.integers(6, 26))):
        x, y = (float(v) for v in rng.uniform(-1.0, 1.0, 2))
        line = wander(rng, (x, y), unit(float(rng.random())), step=0.03, count=int(rng.integers(4, 11)), bend=0.5)
        canvas.line(line, float(rng.uniform(0.008, 0.018)), float(rng.uniform(0.3, 0.8)))
    scale(picture, as_field(canvas.field() * float(rng.uniform(0.1, 0.3))), (0.9, 0.55, 0.6))


def _freckles(rng: np.random.Generator, picture: Field, where: Plane) -> None:
    """Draw small moles beside the lesion, with colours independent of it."""
    for _ in range(int(rng.integers(1, 7))):
        dx, dy = unit(float(rng.random()))
        away = float(rng.uniform(0.65, 1.1))
        radius = float(rng.uniform(0.02, 0.09))
        near = where.around(away * dx, away * dy, radius * 2.0)
        shape = blob(near, away * dx, away * dy, radius, stretch=float(rng.uniform(1.0, 1.5)))
        alpha = smoothstep(as_field(shape + 0.3 * noise(rng, shape.shape, 5)), -0.3, 0.5)
        tone = (150.0, 96.0, 66.0) if rng.random() < 0.7 else (188.0, 84.0, 84.0)
        mix(picture[near.window], as_field(alpha * float(rng.uniform(0.25, 0.75))), tone)


def draw_over(rng: np.random.Generator, picture: Field, where: Plane) -> dict[str, Json]:
    """Draw objects on the skin, in place, and describe them: ``hairs`` (count), ``ruler``, ``bubbles`` (count)."""
    hairs = int(rng.integers(2, 34)) if rng.random() < 0.4 else 0
    if hairs:
        _hair(rng, picture, where, hairs)
    ruler = bool(rng.random() < 0.16)
    if ruler:
        _ruler(rng, picture, where)
    bubbles = int(rng.integers(1, 9)) if rng.random() < 0.15 else 0
    for _ in range(bubbles):
        x, y = (float(v) for v in rng.uniform(-1.0, 1.0, 2))
        radius = float(rng.uniform(0.03, 0.11))
        near = where.around(x, y, radius * 1.2)
        shape = blob(near, x, y, radius)
        edge = as_field(smoothstep(shape, -0.1, 0.05) * (1.0 - smoothstep(shape, 0.05, 0.25)))
        mix(picture[near.window], as_field(edge * 0.35), (250.0, 245.0, 245.0))
    return {"hairs": hairs, "ruler": ruler, "bubbles": bubbles}


def _hair(rng: np.random.Generator, picture: Field, where: Plane, count: int) -> None:
    canvas = Canvas(where.size)
    lean = float(rng.random())
    short = bool(rng.random() < 0.35)
    wide = float(rng.uniform(0.007, 0.017))
    for _ in range(count):
        x, y = (float(v) for v in rng.uniform(-1.1, 1.1, 2))
        heading = unit(lean + float(rng.normal(0.0, 0.09)))
        steps = int(rng.integers(2, 5)) if short else int(rng.integers(10, 34))
        line = wander(rng, (x, y), heading, step=0.055, count=steps, bend=0.03, drift=float(rng.normal(0.0, 0.03)))
        canvas.line(line, wide * float(rng.uniform(0.7, 1.2)), float(rng.uniform(0.6, 1.0)))
    fair = float(rng.random()) ** 2
    tone = (46.0 + 110.0 * fair, 28.0 + 84.0 * fair, 26.0 + 60.0 * fair)
    mix(picture, as_field(canvas.field() * float(rng.uniform(0.55, 0.95))), tone)


def _ruler(rng: np.random.Generator, picture: Field, where: Plane) -> None:
    """Draw the ticks of a scale along one edge."""
    canvas = Canvas(where.size)
    flip = bool(rng.random() < 0.5)
    sign = 1.0 if rng.random() < 0.5 else -1.0
    gap = float(rng.uniform(0.05, 0.09))
    edge = float(rng.uniform(0.9, 0.98))
    for k in range(round(float(rng.uniform(0.7, 2.0)) / gap)):
        along = -1.0 + k * gap
        deep = 0.1 if k % 5 == 0 else 0.055
        ends = [(along, sign * edge), (along, sign * (edge - deep))]
        canvas.line([(b, a) for a, b in ends] if flip else ends, 0.009)
    mix(picture, as_field(canvas.field() * 0.85), (26.0, 24.0, 30.0))


def vignette(rng: np.random.Generator, where: Plane) -> tuple[Field, bool]:
    """Return the light passing the dermatoscope, and whether its dark rim is in the picture."""
    square = where.x * where.x + where.y * where.y
    light = as_field(1.0 - float(rng.uniform(0.0, 0.12)) * square)
    rim = bool(rng.random() < 0.22)
    radius = float(rng.uniform(1.02, 1.3))
    if rim:
        distance = np.sqrt(square)
        light = as_field(light * (1.0 - smoothstep(as_field(distance), radius - 0.06, radius + 0.04)))
    return light, rim
