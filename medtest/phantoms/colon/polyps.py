"""Polyps: unions of domes on the wall, lit from the endoscope, with their own colour and surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtest.phantoms.fields import Field, as_field, direction, pick, resize

TYPES: dict[str, float] = {"sessile": 0.6, "flat": 0.22, "pedunculated": 0.18}
COLOURS: dict[str, tuple[float, float, float, float]] = {
    "like tissue": (1.0, 1.0, 1.0, 0.27),
    "red": (1.02, 0.72, 0.75, 0.27),
    "pale": (1.15, 1.35, 1.4, 0.25),
    "yellowish": (1.1, 1.3, 0.85, 0.11),
    "dark red": (0.8, 0.5, 0.62, 0.10),
}
"""Gain of red, green and blue relative to the tissue's albedo, and weight."""
SURFACES: dict[str, float] = {"smooth": 0.4, "granular": 0.3, "ridged": 0.3}


@dataclass(frozen=True, kw_only=True, eq=False)
class PolypShape:
    """The outline and relief of a polyp on a square patch of half side ``REACH`` in its own units.

    Attributes:
        lobes: (x, y, cosine, sine, 1/a, 1/b, height) of each dome.
        warp: float32 2×g×g, displacement of the patch.
        area: Area in own units.
        radius: Distance of the farthest point from the centroid, in own units.
        centre: Centroid on the patch, in own units.
    """

    lobes: tuple[tuple[float, ...], ...]
    warp: Field
    area: float
    radius: float
    centre: tuple[float, float]


REACH = 2.2
BAND = 64
"""Rows computed at once."""


def relief(shape: PolypShape, side: int) -> tuple[Field, Field, Field]:
    """Return height (1 at a summit, 0 on the outline, negative outside) and the slope's x and y, each side×side."""
    axis = (np.arange(side, dtype=np.float32) + np.float32(0.5)) * np.float32(2 * REACH / side) - np.float32(REACH)
    ax, ay = as_field(axis[None, :]), as_field(axis[:, None])
    px, py = resize(shape.warp[0], (side, side)), resize(shape.warp[1], (side, side))
    px, py = np.add(ax, px, out=px), np.add(ay, py, out=py)
    best = np.full((side, side), -9.0, np.float32)
    sx = np.zeros((side, side), np.float32)
    sy = np.zeros((side, side), np.float32)
    # Processing in bands of rows limits peak memory if a polyp fills the image.
    for top in range(0, side, BAND):
        band = slice(top, top + BAND)
        _raise_domes(shape, px[band], py[band], best[band], sx[band], sy[band])
    return best, as_field(sx), as_field(sy)


def _raise_domes(shape: PolypShape, px: Field, py: Field, best: Field, sx: Field, sy: Field) -> None:
    """Write height and slope of the highest dome at each pixel into ``best``, ``sx`` and ``sy``."""
    dx, dy, u, spare = (np.empty_like(best) for _ in range(4))
    for lobe in shape.lobes:
        x, y, cosine, sine, ia, ib, height = (np.float32(value) for value in lobe)
        np.subtract(px, x, out=dx)
        np.subtract(py, y, out=dy)
        np.add(np.multiply(dx, cosine, out=u), np.multiply(dy, sine, out=spare), out=u)
        u *= ia
        np.multiply(dx, sine, out=dx)
        v = np.subtract(np.multiply(dy, cosine, out=dy), dx, out=dy)
        v *= ib
        h = np.subtract(height, np.multiply(u, u, out=spare), out=spare)
        h -= np.multiply(v, v, out=dx)
        upper = h > best
        np.copyto(best, h, where=upper)
        np.subtract(np.multiply(u, cosine, out=dx), np.multiply(v, sine, out=spare), out=dx)
        np.copyto(sx, dx, where=upper)
        np.add(np.multiply(u, sine, out=dx), np.multiply(v, cosine, out=spare), out=dx)
        np.copyto(sy, dx, where=upper)


def make_shape(rng: np.random.Generator, kind: str) -> PolypShape:
    """Draw a shape: one dome, a few merged ones, or many (cauliflower)."""
    form = float(rng.random())
    count = 1 if form < 0.5 else int(rng.integers(2, 4)) if form < 0.8 else int(rng.integers(4, 9))
    lobes: list[tuple[float, ...]] = []
    for k in range(count):
        c, s = direction(rng)
        away = 0.0 if k == 0 else float(rng.uniform(0.25, 0.75))
        place = direction(rng)
        size = 1.0 if count == 1 else float(rng.uniform(0.45, 0.85))
        ratio = float(rng.uniform(0.62 if kind != "flat" else 0.45, 1.0))
        lobes.append((away * place[0], away * place[1], c, s, 1 / size, 1 / (size * ratio), float(rng.uniform(0.8, 1))))
    warp = as_field(0.085 * rng.standard_normal((2, 6, 6)))
    draft = PolypShape(lobes=tuple(lobes), warp=warp, area=1.0, radius=1.0, centre=(0.0, 0.0))
    side = 48
    inside = relief(draft, side)[0] > 0
    rows, columns = np.nonzero(inside)
    cell = 2 * REACH / side
    cx, cy = float(columns.mean() + 0.5) * cell - REACH, float(rows.mean() + 0.5) * cell - REACH
    far = np.sqrt(((columns + 0.5) * cell - REACH - cx) ** 2 + ((rows + 0.5) * cell - REACH - cy) ** 2)
    return PolypShape(
        lobes=draft.lobes, warp=warp, area=float(inside.sum()) * cell * cell, radius=float(far.max()), centre=(cx, cy)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Look:
    """Material of a polyp."""

    kind: str
    colour: str
    gain: Field
    surface: str
    bulge: float
    brightness: float
    low_contrast: bool


def make_look(rng: np.random.Generator) -> Look:
    """Draw type, colour and surface."""
    kind = pick(rng, TYPES)
    colour = pick(rng, {name: values[3] for name, values in COLOURS.items()})
    low = bool(rng.random() < 0.15)
    amount = float(rng.uniform(0.15, 0.35)) if low else float(rng.uniform(0.6, 1.15))
    gain = as_field([1.0 + (v - 1.0) * amount for v in COLOURS[colour][:3]])
    bulge = float(rng.uniform(0.3, 0.55)) if kind == "flat" else float(rng.uniform(0.65, 0.95))
    return Look(
        kind=kind,
        colour=colour,
        gain=gain,
        surface=pick(rng, SURFACES),
        bulge=bulge * (0.75 if low else 1.0),
        brightness=float(rng.uniform(1.1, 1.35)) if low else float(rng.uniform(1.35, 2.3)),
        low_contrast=low,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Patch:
    """A polyp drawn on a square of the working image.

    Attributes:
        left: Column of the square's first pixel, may be negative.
        top: Row of its first pixel, may be negative.
        height: float32 side×side, positive inside the polyp.
        light: float32 side×side, gain of the polyp's own shading.
        shade: float32 side×side, gain on the wall around it (contact shadow).
    """

    left: int
    top: int
    height: Field
    light: Field
    shade: Field


def draw_patch(
    shape: PolypShape, look: Look, *, centre: tuple[float, float], scale: float, light: tuple[float, float]
) -> Patch:
    """Draw a polyp.

    Args:
        shape: Outline.
        look: Material.
        centre: Column and row of its centroid in the working image.
        scale: Working pixels per unit of the shape.
        light: Direction in which the light leans, x and y, at most about 0.6 long.
    """
    side = max(8, round(2 * REACH * scale))
    height, sx, sy = relief(shape, side)
    towards = sx * np.float32(light[0]) + sy * np.float32(light[1])
    del sx, sy  # the arrays may be as large as the image
    corner = scale * REACH
    return Patch(
        left=round(centre[0] - shape.centre[0] * scale - corner),
        top=round(centre[1] - shape.centre[1] * scale - corner),
        height=height,
        light=_own_shading(height, towards, look),
        shade=_contact_shadow(height, towards, look),
    )


def _own_shading(height: Field, towards: Field, look: Look) -> Field:
    up = np.sqrt(np.clip(height, 0.0, 1.0))
    lean = np.float32(look.bulge)
    # Between a sphere's and a paraboloid's shading: the light is near, so domes darken from the summit on.
    dome = 0.4 * up + 0.6 * np.clip(height, 0.0, 1.0)
    facing = 0.12 + 0.88 * ((1.0 - lean) + lean * dome)
    facing = facing + lean * towards * 0.7 * (0.3 + 0.7 * up)
    return as_field(np.clip(facing, 0.08, 1.4))


def _contact_shadow(height: Field, towards: Field, look: Look) -> Field:
    around = np.clip(1.0 + height * 2.2, 0.0, 1.0)
    depth = np.float32(0.42 * look.bulge)
    shade = 1.0 - depth * around * around * np.clip(0.7 - towards, 0.15, 1.6)
    return as_field(np.clip(shade, 0.2, 1.0))
