"""Lesions of the small bowel: bleeding and angiectasia, ulcers, erosions and erythema."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtest.core.cases import Json
from medtest.phantoms.drawing import Canvas, Plane, blob, mix, noise, ripples, scale, soften, unit, wander
from medtest.phantoms.fields import Field, as_field, direction, pick, smoothstep

KINDS: dict[str, tuple[tuple[str, float], ...]] = {
    "normal": (),
    "vascular": (("bleeding", 0.5), ("angiectasia", 0.5)),
    "inflammatory": (("ulcer", 0.35), ("erosions", 0.35), ("erythema", 0.3)),
}
"""Kinds of lesion of each class, with weights; no frame holds lesions of two classes."""


@dataclass(frozen=True, kw_only=True)
class Lesion:
    """Planned lesion.

    Attributes:
        kind: One of :data:`KINDS`' kinds.
        x: Column of its centre, in half sides of the picture.
        y: Row of its centre.
        radius: Radius of a circle of the same area, in the same units.
        contrast: Strength of its colour, 0 to 1.
        stretch: Ratio of length to width.
        number: Number of the lesion in the frame.
    """

    kind: str
    x: float
    y: float
    radius: float
    contrast: float
    stretch: float
    number: int

    @property
    def length(self) -> float:
        """Half its longer axis; the radius is that of a circle of the same area."""
        return self.radius * float(self.stretch**0.5)

    def describe(self) -> dict[str, Json]:
        """Return the lesion's entry in ``facts``."""
        return {
            "kind": self.kind,
            "centre": [round(self.x, 4), round(self.y, 4)],
            "radius": round(self.radius, 4),
            "contrast": round(self.contrast, 3),
        }


COUNTS: dict[str, tuple[int, int]] = {
    "bleeding": (1, 1), "angiectasia": (1, 3), "ulcer": (1, 1), "erosions": (2, 5), "erythema": (1, 2),
}  # fmt: skip
RADII: dict[str, tuple[float, float]] = {
    "bleeding": (0.14, 0.45), "angiectasia": (0.06, 0.15), "ulcer": (0.10, 0.24), "erosions": (0.045, 0.09),
    "erythema": (0.16, 0.38),
}  # fmt: skip
"""Smallest and largest radius, in half sides of the picture."""


def plan_lesions(rng: np.random.Generator, label: str, light: Field) -> list[Lesion]:
    """Draw the lesions of a frame and their positions, on well-lit mucosa.

    Args:
        rng: The stream of the plan.
        label: The class.
        light: float32 h×w, illumination, about 1 on average.
    """
    kinds = KINDS[label]
    if not kinds:
        return []
    kind = pick(rng, dict(kinds))
    low, high = COUNTS[kind]
    contrast = float(rng.uniform(0.45, 1.0))
    return place_lesions(rng, kind, int(rng.integers(low, high + 1)), contrast, light)


def place_lesions(
    rng: np.random.Generator, kind: str, count: int, contrast: float, light: Field, first: int = 0
) -> list[Lesion]:
    """Draw positions and shapes of some lesions of one kind.

    Args:
        rng: The stream of the plan.
        kind: One of :data:`RADII`'s kinds.
        count: How many.
        contrast: Their mean contrast, 0 to 1.
        light: float32 h×w, illumination, about 1 on average.
        first: Number of the first lesion.
    """
    lesions: list[Lesion] = []
    centre: tuple[float, float] | None = None
    for number in range(first, first + count):
        small, large = RADII[kind]
        radius = small * (large / small) ** float(rng.random())
        reach = 0.8 - min(0.4, radius)
        x, y = _place(rng, light, reach, centre)
        centre = centre or (x, y)
        own = min(1.0, max(0.4, contrast + float(rng.uniform(-0.1, 0.1))))
        stretch = float(rng.uniform(1.0, 3.2 if kind == "bleeding" else 1.8))
        lesions.append(Lesion(kind=kind, x=x, y=y, radius=radius, contrast=own, stretch=stretch, number=number))
    return lesions


def _place(
    rng: np.random.Generator, light: Field, reach: float, near: tuple[float, float] | None
) -> tuple[float, float]:
    """Return the best lit of a few positions within ``reach`` of the centre; further ones are near the first."""
    best, position = 9.0, (0.0, 0.0)
    for _ in range(8):
        dx, dy = direction(rng)
        away = float(rng.random()) ** 0.5 * reach
        if near is None:
            x, y = away * dx, away * dy
        else:
            x, y = near[0] + 0.6 * away * dx, near[1] + 0.6 * away * dy
            if x * x + y * y > reach * reach:
                continue
        row = int((y + 1.0) * 0.5 * light.shape[0])
        column = int((x + 1.0) * 0.5 * light.shape[1])
        off = abs(float(light[row, column]) - 0.9)
        if off < best:
            best, position = off, (x, y)
    return position


def paint(rng: np.random.Generator, albedo: Field, where: Plane, lesion: Lesion, mask: Field, wet: Field) -> None:
    """Draw one lesion into h×w×3 reflectance, in place; raise ``mask`` to its shape and ``wet`` on smooth areas."""
    near = where.around(lesion.x, lesion.y, lesion.radius * 2.6)
    rows, columns = near.window
    part, own = albedo[rows, columns], mask[rows, columns]
    turn = unit(float(rng.random()))
    shape = blob(
        near, lesion.x, lesion.y, lesion.length, stretch=lesion.stretch, turn=turn, weights=ripples(rng, 5, 0.08)
    )  # fmt: skip
    if lesion.kind == "bleeding":
        alpha = _bleeding(rng, part, shape, lesion)
        np.maximum(wet[rows, columns], alpha, out=wet[rows, columns])
    elif lesion.kind == "angiectasia":
        alpha = _angiectasia(rng, part, near, shape, lesion)
    elif lesion.kind == "erythema":
        alpha = _erythema(rng, part, shape, lesion)
    else:
        alpha = _ulcer(rng, part, shape, lesion)
    np.maximum(own, alpha, out=own)


def _bleeding(rng: np.random.Generator, part: Field, shape: Field, lesion: Lesion) -> Field:
    ragged = shape + 0.42 * noise(rng, shape.shape, 7) + 0.14 * noise(rng, shape.shape, 22)
    alpha = smoothstep(as_field(ragged), 0.0, float(rng.uniform(0.15, 0.5)))
    old = float(rng.uniform(0.0, 1.0)) ** 2
    deep = 0.35 + 0.65 * lesion.contrast
    thick = as_field(alpha * (deep * (0.85 + 0.15 * smoothstep(as_field(ragged), 0.2, 1.0))))
    scale(part, thick, (0.86 - 0.5 * old, 0.2 - 0.06 * old, 0.24 - 0.08 * old))
    return alpha


def _angiectasia(rng: np.random.Generator, part: Field, near: Plane, shape: Field, lesion: Lesion) -> Field:
    ragged = as_field(shape + 0.32 * noise(rng, shape.shape, 11))
    core = smoothstep(ragged, 0.15, 0.6)
    canvas = Canvas(near.size)
    for _ in range(int(rng.integers(5, 11))):
        heading = unit(float(rng.random()))
        line = wander(rng, (lesion.x, lesion.y), heading, step=lesion.radius * 0.16, count=9, bend=0.35)
        canvas.line(line, lesion.radius * float(rng.uniform(0.07, 0.15)), float(rng.uniform(0.6, 1.0)))
    web = canvas.field()[near.window]
    alpha = as_field(np.maximum(core, web * smoothstep(shape, -0.75, -0.1)))
    strength = 0.35 + 0.6 * lesion.contrast
    scale(part, as_field(alpha * strength), (0.9, 0.28, 0.3))
    return as_field(np.maximum(alpha, smoothstep(shape, 0.1, 0.5)))


def _erythema(rng: np.random.Generator, part: Field, shape: Field, lesion: Lesion) -> Field:
    ragged = as_field(shape + 0.3 * noise(rng, shape.shape, 8))
    alpha = smoothstep(ragged, -0.1, 0.45)
    mottled = as_field(alpha * (0.8 + 0.28 * noise(rng, shape.shape, 26)))
    strength = 0.45 + 0.45 * lesion.contrast
    scale(part, as_field(np.clip(mottled, 0.0, 1.0) * strength), (1.05, 0.38, 0.46))
    return alpha


def _ulcer(rng: np.random.Generator, part: Field, shape: Field, lesion: Lesion) -> Field:
    """Draw a whitish base with a red rim; erosions are small ones with a narrower rim."""
    ragged = as_field(shape + 0.16 * noise(rng, shape.shape, 8))
    base = smoothstep(ragged, 0.12, 0.42)
    rim = as_field(smoothstep(ragged, -0.75, 0.1) * (1.0 - base))
    scale(part, as_field(rim * (0.25 + 0.55 * lesion.contrast)), (1.03, 0.4, 0.48))
    yellow = float(rng.uniform(0.0, 1.0))
    pale = (1.15, 1.02 - 0.08 * yellow, 0.8 - 0.32 * yellow)
    slough = as_field(base * (0.9 + 0.12 * noise(rng, shape.shape, 14)))
    mix(part, as_field(np.clip(slough, 0.0, 1.0) * (0.3 + 0.55 * lesion.contrast)), pale)
    return smoothstep(ragged, -0.3, 0.05)


def villi(rng: np.random.Generator, shape: tuple[int, int], unit_: float) -> tuple[Field, Field]:
    """Return the velvet of the mucosa around 0 and its fine relief, float32 h×w; ``unit_`` is pixels per 1/320."""
    cells = max(8, round(shape[0] / (3.2 * unit_)))
    broad = noise(rng, shape, max(6, cells // 4))
    fine = noise(rng, shape, cells)
    relief = as_field(fine + 0.6 * broad)
    slope = np.zeros(shape, np.float32)
    step = max(1, round(unit_))
    slope[step:, step:] = relief[step:, step:] - relief[:-step, :-step]
    return as_field(0.4 * broad + 0.6 * fine), soften(slope, 0.0, shape[0])
