"""Fourteen pictures of blood: pools, streaks, drops, clots and oozing.

Blood is drawn as a layer of varying thickness. Light that crosses it is absorbed (Beer and Lambert), green and blue
before red: a thin film is bright red and lets the wall through, a thick pool is nearly black. Its surface is smooth,
so that highlights are small and hard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cv2
import numpy as np

from object_drawing.feces import disc, stroke
from object_drawing.shading import SUPER, Array, Canvas, curve, diffuse, glint, inflate, noise, normals, smoothstep

Draw = Callable[[Canvas, np.random.Generator], None]
ABSORPTION = np.array([0.60, 2.4, 2.6], np.float32)
"""Per unit of thickness, for red, green, blue: chosen so that thickness 1 is scarlet and 3 is maroon."""
TISSUE = np.array([0.80, 0.47, 0.42], np.float32)


def blood_surface(
    canvas: Canvas,
    thickness: Array,
    rng: np.random.Generator,
    *,
    wet: float = 0.9,
    ripple: float = 0.5,
    dark: float = 0.0,
) -> None:
    """Lay blood of the given thickness (0 is none, 1 a film, 3 a pool).

    Args:
        canvas: Where to draw.
        thickness: float32 per canvas pixel.
        rng: Random numbers.
        wet: Strength of highlights.
        ripple: Unevenness of the surface.
        dark: How far the blood has turned brown-black, 0 to 1.
    """
    shape = canvas.alpha.shape
    uneven = noise(shape, 34 * SUPER, rng, 4)
    layer = np.asarray(thickness * np.clip(1 + 0.16 * uneven, 0.25, 1.8), np.float32)
    # Blood creeps into the wet wall around it: a thin, uneven halo without a rim.
    halo = np.asarray(cv2.GaussianBlur(np.minimum(thickness, 1.2), (0, 0), 5 * SUPER), np.float32)
    layer = np.maximum(layer, 0.45 * halo * np.clip(0.8 + 0.5 * noise(shape, 12 * SUPER, rng, 3), 0.0, 1.6))
    through = TISSUE * np.exp(-ABSORPTION * layer[..., None])
    scattered = np.array([0.24, 0.028, 0.028], np.float32) * (1 - np.exp(-1.3 * layer))[..., None]
    height = SUPER * (3.2 * np.minimum(layer, 2.6) + ripple * noise(shape, 16 * SUPER, rng, 3))
    normal = normals(np.asarray(cv2.GaussianBlur(height.astype(np.float32), (0, 0), SUPER * 1.0), np.float32))
    rgb = (through + scattered) * (0.55 + 0.45 * diffuse(normal))[..., None]
    if dark:
        brown = np.array([0.18, 0.055, 0.045], np.float32) * (0.35 + diffuse(normal))[..., None]
        rgb = rgb * (1 - dark) + brown * dark
    spots = smoothstep(1.0, 1.7, noise(shape, 11 * SUPER, rng, 2)) * smoothstep(0.3, 0.9, layer)
    shine = smoothstep(0.55, 0.95, glint(normal, 90)) * spots
    rgb = rgb + (wet * shine)[..., None] * np.array([1.0, 0.94, 0.92], np.float32)
    alpha = np.clip(1 - np.exp(-2.1 * layer), 0, 1) * 0.96
    canvas.over(np.asarray(rgb, np.float32), np.asarray(np.maximum(alpha, shine * (layer > 0.1)), np.float32))


def meniscus(field: Array, rise: float, deep: float) -> Array:
    """Return a thickness that rises steeply at the edge of a positive field and is level inside."""
    t = np.clip(field / rise, 0, 1)
    return np.asarray(deep * np.sqrt(np.clip(1 - (1 - t) ** 2, 0, 1)) * smoothstep(-0.6, 0.8, field), np.float32)


def _pool(canvas: Canvas, rng: np.random.Generator, wobble: float, size: float = 0.38, scale: float = 80) -> Array:
    w, h = canvas.width, canvas.height
    warp = noise(canvas.alpha.shape, scale * SUPER, rng, 4)
    return disc(canvas, (w / 2, h / 2), (w * size, h * size * 0.96), wobble, warp)


def pool_large(canvas: Canvas, rng: np.random.Generator) -> None:
    """Large dark pool."""
    field = _pool(canvas, rng, 0.20, 0.38)
    blood_surface(canvas, meniscus(field, 26, 2.3), rng, ripple=0.35)


def pool_small(canvas: Canvas, rng: np.random.Generator) -> None:
    """Small bright pool."""
    blood_surface(canvas, meniscus(_pool(canvas, rng, 0.16, 0.36, 50), 12, 1.6), rng, ripple=0.3)


def pool_lobed(canvas: Canvas, rng: np.random.Generator) -> None:
    """Pool that has spread into the grooves between folds."""
    field = _pool(canvas, rng, 0.30, 0.33, 70)
    blood_surface(canvas, meniscus(field, 14, 2.0), rng)


def film(canvas: Canvas, rng: np.random.Generator) -> None:
    """Thin smear of blood, uneven."""
    field = _pool(canvas, rng, 0.36, 0.35, 60)
    grain = 0.55 + 0.35 * noise(canvas.alpha.shape, 16 * SUPER, rng, 4)
    layer = smoothstep(-6, 16, field) * np.clip(grain, 0.05, 1.6)
    blood_surface(canvas, np.asarray(layer, np.float32), rng, wet=0.5, ripple=0.7)


def _streak(
    canvas: Canvas, rng: np.random.Generator, paths: Sequence[tuple[Sequence[tuple[float, float]], float, float]]
) -> Array:
    best = np.full(canvas.alpha.shape, -1e3, np.float32)
    size = np.array([canvas.width, canvas.height])
    for points, start, end in paths:
        path = curve(np.asarray(points) * size, 40)
        path[1:-1] += rng.normal(0, 0.5, (38, 2))
        widths = np.linspace(start, end, 40) * (1 + 0.14 * np.sin(np.linspace(0, 13, 40) + rng.uniform(0, 6)))
        best = np.maximum(best, stroke(canvas, path.astype(np.float32), widths.astype(np.float32)))
    return np.asarray(best + 1.1 * noise(canvas.alpha.shape, 12 * SUPER, rng, 3), np.float32)


def streak_long(canvas: Canvas, rng: np.random.Generator) -> None:
    """Long streak that ends in a bead."""
    field = _streak(canvas, rng, [([(0.06, 0.30), (0.3, 0.45), (0.55, 0.42), (0.80, 0.62), (0.90, 0.66)], 4.0, 9.5)])
    blood_surface(canvas, meniscus(field, 7, 1.9), rng, ripple=0.25)


def streak_branched(canvas: Canvas, rng: np.random.Generator) -> None:
    """Branched rivulet."""
    trunk = [(0.10, 0.12), (0.30, 0.34), (0.50, 0.46), (0.72, 0.74), (0.84, 0.88)]
    side = [(0.50, 0.46), (0.66, 0.44), (0.88, 0.36)]
    small = [(0.30, 0.34), (0.30, 0.58), (0.24, 0.78)]
    field = _streak(canvas, rng, [(trunk, 9.0, 5.0), (side, 5.0, 2.4), (small, 4.5, 3.0)])
    blood_surface(canvas, meniscus(field, 7, 1.8), rng, ripple=0.25)


def streak_thin(canvas: Canvas, rng: np.random.Generator) -> None:
    """Three thin parallel streaks."""
    lines = [
        ([(0.08, 0.34), (0.3, 0.40), (0.56, 0.34), (0.88, 0.44)], 5.2, 1.4),
        ([(0.26, 0.62), (0.42, 0.56), (0.60, 0.60), (0.80, 0.74)], 3.0, 5.6),
        ([(0.10, 0.78), (0.22, 0.72), (0.34, 0.76)], 2.4, 1.2),
    ]
    blood_surface(canvas, meniscus(_streak(canvas, rng, lines), 4, 1.3), rng, ripple=0.2)


def drip(canvas: Canvas, rng: np.random.Generator) -> None:
    """Run of blood from a small wound, swelling at its lower end."""
    run = _streak(canvas, rng, [([(0.46, 0.10), (0.50, 0.36), (0.46, 0.62), (0.52, 0.82)], 8.0, 13.0)])
    warp = noise(canvas.alpha.shape, 60, rng, 2)
    field = np.maximum(run, disc(canvas, (canvas.width * 0.52, canvas.height * 0.80), (19, 22), 0.08, warp))
    blood_surface(canvas, meniscus(field, 12, 2.4), rng, ripple=0.25)


def _drops(canvas: Canvas, rng: np.random.Generator, count: int, sizes: tuple[float, float]) -> Array:
    best = np.full(canvas.alpha.shape, -1e3, np.float32)
    warp = noise(canvas.alpha.shape, 14 * SUPER, rng, 3)
    for _ in range(count):
        size = sizes[0] + (sizes[1] - sizes[0]) * rng.uniform(0, 1) ** 2
        turn, reach = rng.uniform(0, 2 * np.pi), 0.38 * rng.uniform(0, 1) ** 0.6
        place = (canvas.width * (0.5 + reach * np.cos(turn)), canvas.height * (0.5 + reach * np.sin(turn)))
        best = np.maximum(best, disc(canvas, place, (size * rng.uniform(1, 1.6), size), 0.24, warp))
        if size > 0.55 * sizes[1]:
            # A large drop runs: a tail in the direction of all others.
            run = np.array([place, (place[0] + 0.7 * size, place[1] + 2.2 * size)], np.float32)
            best = np.maximum(best, stroke(canvas, run, np.array([0.62 * size, 0.34 * size], np.float32)))
    return np.asarray(best + 0.9 * warp, np.float32)


def drops_few(canvas: Canvas, rng: np.random.Generator) -> None:
    """A few large drops."""
    blood_surface(canvas, meniscus(_drops(canvas, rng, 7, (8, 24)), 11, 2.1), rng, ripple=0.2)


def drops_many(canvas: Canvas, rng: np.random.Generator) -> None:
    """Many small drops."""
    blood_surface(canvas, meniscus(_drops(canvas, rng, 22, (1.8, 11)), 6, 1.5), rng, ripple=0.2)


def clot(canvas: Canvas, rng: np.random.Generator) -> None:
    """Dark jelly-like clot in a rim of fresh blood."""
    field = _pool(canvas, rng, 0.20, 0.36, 60)
    blood_surface(canvas, meniscus(field, 8, 1.5), rng, ripple=0.4)
    inner = np.asarray(field - 10 + 2 * noise(canvas.alpha.shape, 20 * SUPER, rng, 3), np.float32)
    lump = inflate(smoothstep(-0.5, 0.5, inner), 30 * SUPER) / (14 * SUPER)
    lump = lump + 0.35 * noise(canvas.alpha.shape, 30 * SUPER, rng, 3) * (lump > 0)
    blood_surface(canvas, np.asarray(np.clip(lump, 0, 4), np.float32) * smoothstep(-0.5, 1.5, inner), rng, dark=0.45)
    canvas.shadow(0.26, (-2.0, 3.0), 3.5)


def clot_black(canvas: Canvas, rng: np.random.Generator) -> None:
    """Old black-red clot with crumbs."""
    field = np.maximum(_pool(canvas, rng, 0.26, 0.30, 44), _drops(canvas, rng, 9, (3, 9)))
    lump = inflate(smoothstep(-0.5, 0.5, field), 18 * SUPER) / (7 * SUPER)
    lump = np.clip(lump + 0.45 * noise(canvas.alpha.shape, 14 * SUPER, rng, 4) * (lump > 0.2), 0, 4)
    blood_surface(canvas, np.asarray(lump, np.float32), rng, dark=0.72, wet=0.7, ripple=0.9)
    canvas.shadow(0.26, (-2.0, 3.0), 3.0)


def oozing(canvas: Canvas, rng: np.random.Generator) -> None:
    """Oozing wound: mottled fresh blood with small runs."""
    w, h = canvas.width, canvas.height
    mottle = noise(canvas.alpha.shape, 26 * SUPER, rng, 4)
    base = disc(canvas, (w * 0.48, h * 0.42), (w * 0.34, h * 0.30), 0.30, noise(canvas.alpha.shape, 60 * SUPER, rng, 4))
    patch = np.minimum(base, 6 * (mottle + 0.55))
    runs = _streak(
        canvas,
        rng,
        [
            ([(0.40, 0.50), (0.38, 0.72), (0.42, 0.90)], 7.0, 4.0),
            ([(0.58, 0.48), (0.64, 0.68), (0.62, 0.82)], 5.0, 3.0),
            ([(0.30, 0.46), (0.22, 0.62)], 4.0, 2.4),
        ],
    )
    layer = np.maximum(meniscus(np.asarray(patch, np.float32), 9, 1.5), meniscus(runs, 6, 1.7))
    haze = 0.22 * smoothstep(-10, 14, base)
    blood_surface(canvas, np.asarray(np.maximum(layer, haze), np.float32), rng)


def spatter(canvas: Canvas, rng: np.random.Generator) -> None:
    """Small pool with spatter around it."""
    field = np.maximum(_pool(canvas, rng, 0.22, 0.20, 40), _drops(canvas, rng, 24, (1.8, 7)))
    blood_surface(canvas, meniscus(field, 8, 1.9), rng, ripple=0.25)


BLOOD: dict[str, tuple[int, int, int, Draw]] = {
    "pool_large": (300, 250, 401, pool_large),
    "pool_small": (150, 130, 402, pool_small),
    "pool_lobed": (260, 230, 403, pool_lobed),
    "film": (240, 210, 404, film),
    "streak_long": (320, 130, 405, streak_long),
    "streak_branched": (240, 240, 406, streak_branched),
    "streak_thin": (260, 120, 407, streak_thin),
    "drip": (120, 260, 408, drip),
    "drops_few": (220, 210, 409, drops_few),
    "drops_many": (230, 210, 410, drops_many),
    "clot": (210, 180, 411, clot),
    "clot_black": (180, 170, 412, clot_black),
    "oozing": (230, 240, 413, oozing),
    "spatter": (220, 210, 414, spatter),
}
"""Canvas width and height, seed, and the drawing of each."""
