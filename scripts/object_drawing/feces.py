"""Fourteen pictures of incomplete bowel cleansing: clumps, flecks, films, liquid, seeds and fibres.

Shapes are noise-warped discs and strokes; the surface is a height field lit by the lamps beside the camera; colours
run from olive over mustard to brown, as stool on the real images does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cv2
import numpy as np

from object_drawing.shading import (
    SUPER,
    Array,
    Canvas,
    curve,
    diffuse,
    glint,
    grid,
    inflate,
    noise,
    normals,
    smoothstep,
)

Colour = tuple[float, float, float]
Draw = Callable[[Canvas, np.random.Generator], None]

MUSTARD: Sequence[Colour] = ((134, 82, 25), (188, 125, 39), (216, 156, 60), (240, 188, 102))
OLIVE: Sequence[Colour] = ((102, 69, 25), (146, 102, 39), (182, 135, 56), (214, 169, 95))
BROWN: Sequence[Colour] = ((68, 35, 16), (110, 61, 26), (146, 87, 40), (188, 128, 74))
DARK: Sequence[Colour] = ((48, 28, 14), (80, 51, 25), (110, 74, 37), (152, 110, 63))
YELLOW: Sequence[Colour] = ((142, 93, 23), (194, 138, 39), (222, 167, 65), (244, 199, 114))


def palette(colours: Sequence[Colour], t: Array) -> Array:
    """Return colours along a ramp for ``t`` in [0, 1]."""
    stops = np.linspace(0, 1, len(colours))
    table = np.asarray(colours, np.float32) / 255
    value = np.clip(t, 0, 1)
    return np.stack([np.interp(value, stops, table[:, c]) for c in range(3)], axis=-1).astype(np.float32)


def disc(canvas: Canvas, centre: tuple[float, float], radii: tuple[float, float], wobble: float, warp: Array) -> Array:
    """Return a signed field, positive inside a disc whose rim is pushed in and out by ``warp``."""
    x, y = grid(canvas)
    distance = np.hypot((x - centre[0]) / radii[0], (y - centre[1]) / radii[1])
    field = (1 - distance + wobble * warp) * min(radii)
    # Bend inwards near the canvas's edge, which would cut the shape straight.
    edge = np.minimum(np.minimum(x, canvas.width - x), np.minimum(y, canvas.height - y))
    return np.asarray(field - 2.0 * np.maximum(16 - edge, 0), np.float32)


def stroke(canvas: Canvas, points: Array, widths: Array) -> Array:
    """Return a signed field, positive inside a stroke along the points."""
    x, y = grid(canvas)
    best = np.full(canvas.alpha.shape, -1e3, np.float32)
    for (ax, ay), (bx, by), low, high in zip(points, points[1:], widths, widths[1:], strict=False):
        dx, dy = bx - ax, by - ay
        t = np.clip(((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy + 1e-6), 0, 1)
        best = np.maximum(best, low + (high - low) * t - np.hypot(x - ax - t * dx, y - ay - t * dy))
    return best


def clump_surface(
    canvas: Canvas,
    field: Array,
    colours: Sequence[Colour],
    rng: np.random.Generator,
    *,
    grain: float = 7.0,
    lump: float = 26.0,
    depth: float = 16.0,
    wet: float = 0.5,
    soft: float = 1.6,
) -> None:
    """Lay a solid, crumbly mass where ``field`` is positive.

    Args:
        canvas: Where to draw.
        field: Signed field, stored pixels.
        colours: Ramp from crevice to crest.
        rng: Random numbers.
        grain: Size of crumbs in stored pixels.
        lump: Size of lumps in stored pixels.
        depth: Width of the rounded rim in stored pixels.
        wet: Strength of highlights.
        soft: Width of the edge in stored pixels.
    """
    shape = canvas.alpha.shape
    cover = smoothstep(-soft, soft, field + 1.1 * noise(shape, 5 * SUPER, rng, 2))
    crumbs = noise(shape, grain * SUPER, rng, 3)
    lumps = noise(shape, lump * SUPER, rng, 3)
    height = 0.7 * inflate(cover, depth * SUPER) + SUPER * (0.11 * grain * crumbs + 0.11 * lump * lumps)
    normal = normals(np.asarray(cv2.GaussianBlur(height, (0, 0), SUPER * 0.9), np.float32))
    light = diffuse(normal)
    hollow = np.clip(crumbs * 0.075 + lumps * 0.11, -0.35, 0.35)
    value = 0.02 + 0.66 * light**1.5 + hollow
    rgb = palette(colours, value) * (0.86 + 0.14 * np.clip(1 + 0.5 * noise(shape, 40 * SUPER, rng, 2), 0, 2))[..., None]
    specks = smoothstep(2.1, 2.7, noise(shape, 4.0 * SUPER, rng, 1))
    rgb = rgb * (1 - 0.5 * specks)[..., None]
    drops = smoothstep(0.9, 1.5, noise(shape, 9 * SUPER, rng, 2)) * glint(normal, 26)
    rgb = rgb + (wet * smoothstep(0.45, 0.95, drops))[..., None] * np.array([1.0, 0.98, 0.9], np.float32)
    canvas.over(np.asarray(rgb, np.float32), cover)


def liquid_surface(
    canvas: Canvas,
    field: Array,
    colours: Sequence[Colour],
    rng: np.random.Generator,
    *,
    opacity: float = 0.66,
    soft: float = 7.0,
    wet: float = 0.45,
) -> None:
    """Lay a turbid, half-transparent film where ``field`` is positive, thicker in the middle."""
    shape = canvas.alpha.shape
    swirl = noise(shape, 34 * SUPER, rng, 4)
    thick = np.clip(smoothstep(-soft, 2.6 * soft, field) * (1 + 0.30 * swirl), 0, 1)
    rim = np.exp(-(((field - 1.0) / 2.2) ** 2)) * 0.10
    height = SUPER * (9 * thick + 0.9 * noise(shape, 15 * SUPER, rng, 3))
    normal = normals(np.asarray(height, np.float32))
    rgb = palette(colours, 0.40 + 0.30 * diffuse(normal) + 0.10 * swirl)
    flakes = smoothstep(1.7, 2.2, noise(shape, 5 * SUPER, rng, 2))
    rgb = rgb * (1 - 0.35 * flakes)[..., None]
    shine = smoothstep(0.55, 0.97, glint(normal, 120) * smoothstep(0.7, 1.5, noise(shape, 12 * SUPER, rng, 2)))
    rgb = rgb + (wet * shine)[..., None]
    edge = rim * smoothstep(-soft, 0, field)
    alpha = np.clip(thick * (opacity + 0.25 * flakes + 0.5 * shine) + edge, 0, 0.95)
    canvas.over(np.asarray(rgb, np.float32), np.asarray(alpha, np.float32))


def _clump(canvas: Canvas, rng: np.random.Generator, colours: Sequence[Colour], wobble: float, **look: float) -> None:
    w, h = canvas.width, canvas.height
    field = disc(canvas, (w / 2, h / 2), (w * 0.34, h * 0.34), wobble, noise(canvas.alpha.shape, 70 * SUPER, rng, 4))
    canvas_film = field + 6
    liquid_surface(canvas, np.asarray(canvas_film, np.float32), colours, rng, opacity=0.5, soft=5)
    clump_surface(canvas, field, colours, rng, **look)
    canvas.shadow(0.28, (-2.5, 3.5), 4.0)


def clump_crumbly(canvas: Canvas, rng: np.random.Generator) -> None:
    """Large crumbly mustard clump."""
    _clump(canvas, rng, MUSTARD, 0.17, grain=9.0, lump=30)


def clump_olive(canvas: Canvas, rng: np.random.Generator) -> None:
    """Large olive clump with smooth lumps."""
    _clump(canvas, rng, OLIVE, 0.15, grain=11.0, lump=44, wet=0.7)


def clump_dark(canvas: Canvas, rng: np.random.Generator) -> None:
    """Dark wet clump."""
    _clump(canvas, rng, DARK, 0.14, grain=10.0, lump=46, wet=0.9, depth=24)


def clump_brown(canvas: Canvas, rng: np.random.Generator) -> None:
    """Brown formed piece."""
    _clump(canvas, rng, BROWN, 0.11, grain=8.0, lump=30, depth=26)


def pellets(canvas: Canvas, rng: np.random.Generator) -> None:
    """Several rounded pellets."""
    w, h = canvas.width, canvas.height
    warp = noise(canvas.alpha.shape, 40 * SUPER, rng, 3)
    for x, y, r in ((0.30, 0.34, 0.17), (0.58, 0.28, 0.13), (0.66, 0.58, 0.19), (0.36, 0.66, 0.15), (0.52, 0.80, 0.09)):
        size = r * min(w, h)
        field = disc(canvas, (x * w, y * h), (size * 1.15, size * 0.92), 0.10, warp)
        clump_surface(canvas, field, BROWN, rng, grain=7, lump=22, depth=size * 0.8, wet=0.6)
    canvas.shadow(0.28, (-2.5, 3.5), 4.0)


def flecks(canvas: Canvas, rng: np.random.Generator) -> None:
    """Scattered yellow flecks of many sizes."""
    _flecks(canvas, rng, YELLOW, 26, (2.0, 9.0))


def flecks_olive(canvas: Canvas, rng: np.random.Generator) -> None:
    """Scattered olive flecks with a thin film between."""
    w, h = canvas.width, canvas.height
    film = disc(canvas, (w / 2, h / 2), (w * 0.33, h * 0.31), 0.24, noise(canvas.alpha.shape, 50 * SUPER, rng, 4))
    liquid_surface(canvas, film, OLIVE, rng, opacity=0.55, soft=8)
    _flecks(canvas, rng, OLIVE, 20, (3.0, 12.0))


def _flecks(
    canvas: Canvas, rng: np.random.Generator, colours: Sequence[Colour], count: int, sizes: tuple[float, float]
) -> None:
    w, h = canvas.width, canvas.height
    warp = noise(canvas.alpha.shape, 14 * SUPER, rng, 3)
    best = np.full(canvas.alpha.shape, -1e3, np.float32)
    for _ in range(count):
        turn, reach = rng.uniform(0, 2 * np.pi), 0.40 * rng.uniform(0, 1) ** 0.7
        size = sizes[0] + (sizes[1] - sizes[0]) * rng.uniform(0, 1) ** 2.2
        place = (w * (0.5 + reach * np.cos(turn)), h * (0.5 + reach * np.sin(turn)))
        best = np.maximum(best, disc(canvas, place, (size * rng.uniform(0.8, 1.5), size), 0.35, warp))
    clump_surface(canvas, best, colours, rng, grain=4.0, lump=14, depth=6, wet=0.5, soft=1.2)
    canvas.shadow(0.25, (-1.0, 1.5), 2.5)


def liquid_pool(canvas: Canvas, rng: np.random.Generator) -> None:
    """Pool of turbid yellow liquid."""
    w, h = canvas.width, canvas.height
    field = disc(canvas, (w / 2, h / 2), (w * 0.36, h * 0.35), 0.16, noise(canvas.alpha.shape, 80 * SUPER, rng, 3))
    liquid_surface(canvas, field, YELLOW, rng, opacity=0.74)


def liquid_brown(canvas: Canvas, rng: np.random.Generator) -> None:
    """Pool of brown liquid with floating bits."""
    w, h = canvas.width, canvas.height
    field = disc(canvas, (w / 2, h / 2), (w * 0.36, h * 0.33), 0.18, noise(canvas.alpha.shape, 70 * SUPER, rng, 3))
    liquid_surface(canvas, field, BROWN, rng, opacity=0.82)
    bits = np.minimum(field - 8, 5 * (noise(canvas.alpha.shape, 11 * SUPER, rng, 2) - 1.35))
    clump_surface(canvas, np.asarray(bits, np.float32), MUSTARD, rng, grain=4, lump=10, depth=5, wet=0.4, soft=1.2)


def smear(canvas: Canvas, rng: np.random.Generator) -> None:
    """Long mustard smear."""
    w, h = canvas.width, canvas.height
    path = curve(np.array([(0.08, 0.62), (0.28, 0.44), (0.52, 0.50), (0.76, 0.38), (0.93, 0.48)]) * (w, h), 36)
    widths = h * (0.05 + 0.13 * np.sin(np.linspace(0.2, np.pi - 0.1, 36)) ** 1.2)
    field = stroke(canvas, path, widths) + 3.5 * noise(canvas.alpha.shape, 16 * SUPER, rng, 4)
    liquid_surface(canvas, np.asarray(field + 4, np.float32), MUSTARD, rng, opacity=0.55, soft=5)
    clump_surface(canvas, np.asarray(field - 5, np.float32), MUSTARD, rng, grain=5, lump=18, depth=8, wet=0.6, soft=2.5)


def smear_curved(canvas: Canvas, rng: np.random.Generator) -> None:
    """Curved olive smear along a fold."""
    w, h = canvas.width, canvas.height
    path = curve(np.array([(0.12, 0.16), (0.24, 0.52), (0.50, 0.76), (0.86, 0.84)]) * (w, h), 36)
    widths = min(w, h) * (0.035 + 0.10 * np.sin(np.linspace(0.3, np.pi - 0.25, 36)))
    field = stroke(canvas, path, widths) + 3.2 * noise(canvas.alpha.shape, 18 * SUPER, rng, 4)
    liquid_surface(canvas, np.asarray(field + 5, np.float32), OLIVE, rng, opacity=0.6, soft=6)
    clump_surface(canvas, np.asarray(field - 7, np.float32), OLIVE, rng, grain=5, lump=18, depth=8, wet=0.7, soft=2.5)


def film(canvas: Canvas, rng: np.random.Generator) -> None:
    """Thin yellow residue that covers folds unevenly."""
    w, h = canvas.width, canvas.height
    field = disc(canvas, (w / 2, h / 2), (w * 0.33, h * 0.32), 0.30, noise(canvas.alpha.shape, 60 * SUPER, rng, 5))
    liquid_surface(canvas, field, MUSTARD, rng, opacity=0.68, soft=12, wet=0.3)


def seeds(canvas: Canvas, rng: np.random.Generator) -> None:
    """Fruit seeds in a little residue."""
    w, h = canvas.width, canvas.height
    base = disc(canvas, (w / 2, h / 2), (w * 0.31, h * 0.30), 0.24, noise(canvas.alpha.shape, 40 * SUPER, rng, 4))
    liquid_surface(canvas, base, MUSTARD, rng, opacity=0.56, soft=8)
    x, y = grid(canvas)
    for _ in range(11):
        turn, reach, lean = rng.uniform(0, 2 * np.pi), 0.33 * rng.uniform(0, 1) ** 0.6, rng.uniform(0, np.pi)
        cx, cy = w * (0.5 + reach * np.cos(turn)), h * (0.5 + reach * np.sin(turn))
        u = (x - cx) * np.cos(lean) + (y - cy) * np.sin(lean)
        v = -(x - cx) * np.sin(lean) + (y - cy) * np.cos(lean)
        size = rng.uniform(6.5, 9.5)
        field = (1 - np.hypot(u / size, v / (size * 0.55))) * size * 0.6
        cover = smoothstep(-0.5, 0.5, np.asarray(field, np.float32))
        normal = normals(inflate(cover, size * 0.5 * SUPER))
        tint = YELLOW if rng.uniform() < 0.7 else BROWN
        rgb = palette(tint, 0.15 + 0.75 * diffuse(normal)) + (0.7 * glint(normal, 70))[..., None]
        canvas.over(np.asarray(rgb, np.float32), cover)
    canvas.shadow(0.26, (-1.5, 2.0), 2.5)


def fibres(canvas: Canvas, rng: np.random.Generator) -> None:
    """Plant fibres with crumbs."""
    w, h = canvas.width, canvas.height
    best = np.full(canvas.alpha.shape, -1e3, np.float32)
    for _ in range(7):
        start = np.array([w, h]) * rng.uniform(0.2, 0.8, 2)
        turn = rng.uniform(0, 2 * np.pi)
        steps = np.cumsum(np.stack([np.cos(turn + rng.normal(0, 0.5, 4)), np.sin(turn + rng.normal(0, 0.5, 4))], 1), 0)
        path = np.clip(np.vstack([start, start + steps * min(w, h) * 0.12]), 8, min(w, h) - 8)
        best = np.maximum(best, stroke(canvas, curve(path, 16), np.linspace(2.4, 1.0, 16)))
    crumbs = disc(canvas, (w / 2, h / 2), (w * 0.2, h * 0.18), 0.6, noise(canvas.alpha.shape, 20 * SUPER, rng, 4))
    best = np.maximum(best, crumbs)
    clump_surface(canvas, best, YELLOW, rng, grain=4, lump=12, depth=5, wet=0.6, soft=1.0)
    canvas.shadow(0.26, (-1.5, 2.0), 2.5)


FECES: dict[str, tuple[int, int, int, Draw]] = {
    "clump_crumbly": (280, 250, 301, clump_crumbly),
    "clump_olive": (250, 220, 302, clump_olive),
    "clump_dark": (240, 230, 303, clump_dark),
    "clump_brown": (230, 170, 304, clump_brown),
    "pellets": (220, 210, 305, pellets),
    "flecks_yellow": (210, 200, 306, flecks),
    "flecks_olive": (230, 210, 307, flecks_olive),
    "liquid_yellow": (290, 220, 308, liquid_pool),
    "liquid_brown": (270, 220, 309, liquid_brown),
    "smear_mustard": (320, 130, 310, smear),
    "smear_olive": (230, 230, 311, smear_curved),
    "film_mustard": (280, 240, 312, film),
    "seeds": (190, 180, 313, seeds),
    "fibres": (200, 200, 314, fibres),
}
"""Canvas width and height, seed, and the drawing of each."""
