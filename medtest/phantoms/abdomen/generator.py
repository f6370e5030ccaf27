"""Generator of a synthetic CT volume of the upper abdomen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Json
from medtest.phantoms.abdomen.cohort import stream
from medtest.phantoms.abdomen.lesions import paint_tumours, paint_vessels
from medtest.phantoms.abdomen.organs import blend, draw_levels, paint_surroundings
from medtest.phantoms.abdomen.shapes import Field3, Grid3, fitted_liver, refine

REVISION = 1
"""Increased whenever the same random numbers give other voxels."""

SHAPE = (72, 104, 144)
SPACING = (3.0, 2.5, 2.5)
"""Default voxel size (z, y, x) in millimetres; with the default shape 216 × 260 × 360 mm."""
NOISE_HU = 20.0
MOST_VOXELS = 64_000_000
_MARKS = ("right", "left", "lower")


@dataclass(frozen=True, kw_only=True, eq=False)
class AbdomenPhantom:
    """Synthetic volume with its ground truth.

    Attributes:
        volume: float32 D×H×W, Hounsfield units; axes z (foot to head), y (front to back), x (right to left).
        liver: bool D×H×W, including vessels and tumours within it.
        tumours: bool D×H×W.
        spacing: Millimetres a voxel along z, y, x.
        marks: Three points in clear parts of the liver (index coordinates z, y, x), as a user would click them.
        info: Parameters drawn, as JSON values.
    """

    volume: Field3
    liver: NDArray[np.bool_]
    tumours: NDArray[np.bool_]
    spacing: tuple[float, float, float]
    marks: tuple[tuple[float, float, float], ...]
    info: dict[str, Json] = field(default_factory=dict)


def abdomen_rng(suite_seed: int, dataset: str, liver: int, noise: int | None = None) -> np.random.Generator:
    """Return the random stream of one liver's anatomy, or of one of its noise repeats."""
    return stream(int(suite_seed), dataset, liver, "anatomy" if noise is None else ["noise", noise])


def make_abdomen(
    rng: np.random.Generator,
    coefficients: Sequence[float],
    *,
    shift: Sequence[float] = (0.0, 0.0, 0.0),
    noise: np.random.Generator | None = None,
    shape: tuple[int, int, int] = SHAPE,
    spacing: tuple[float, float, float] = SPACING,
    noise_hu: float = NOISE_HU,
) -> AbdomenPhantom:
    """Generate one phantom.

    Args:
        rng: Stream of the anatomy: organs, levels, vessels, tumours.
        coefficients: The liver's shape; see :mod:`medtest.phantoms.abdomen.shapes`.
        shift: Displacement from its mean position: z, y, x in millimetres.
        noise: Stream of the scan's noise; None for no noise.
        shape: Voxels along z, y, x.
        spacing: Their size in millimetres.
        noise_hu: Standard deviation of the noise, Hounsfield units.

    Raises:
        ValueError: A size, spacing or noise is out of range.
    """
    if min(shape) < 16 or int(np.prod(shape)) > MOST_VOXELS:
        raise ValueError(f"{'×'.join(map(str, shape))} voxels; at least 16 a side, at most {MOST_VOXELS:,} together")
    if min(spacing) <= 0 or noise_hu < 0:
        raise ValueError("spacings must be positive and noise not negative")
    grid = Grid3(shape=shape, spacing=spacing)
    coarse = grid.coarser(2)
    levels = draw_levels(rng)
    coarse_liver = fitted_liver(coarse, coefficients, shift=shift)
    volume = paint_surroundings(rng, grid, levels, coarse_liver, coarse)
    distance = refine(coarse_liver, grid.shape)
    inside = volume.copy()
    _texture(rng, inside, levels["liver"])
    paint_vessels(rng, inside, grid, _hilum(coarse_liver, coarse), levels["vessel"])
    tumours = paint_tumours(rng, inside, grid, distance, int(rng.integers(0, 4)), levels["tumour"])
    blend(volume, distance, inside, float(spacing[2]))
    _cava(volume, grid, coarse_liver, coarse, levels["vessel"])
    liver = distance < 0
    tumours &= liver
    marks = _marks(coarse_liver, coarse, grid, tumours, inside, levels["liver"])
    if noise is not None and noise_hu > 0:
        volume += _noise(noise, shape, noise_hu)
    info: dict[str, Json] = {
        "liver_ml": float(np.count_nonzero(liver)) * float(np.prod(spacing)) / 1000,
        "tumour_ml": float(np.count_nonzero(tumours)) * float(np.prod(spacing)) / 1000,
        "levels": {name: float(level) for name, level in levels.items()},
        "shift_mm": [float(s) for s in shift],
    }
    return AbdomenPhantom(volume=volume, liver=liver, tumours=tumours, spacing=spacing, marks=marks, info=info)


def _texture(rng: np.random.Generator, inside: Field3, level: float) -> None:
    """Fill a volume with parenchyma: its level and a slow variation of a few Hounsfield units."""
    slow = rng.standard_normal((5, 6, 8), dtype=np.float32)
    np.multiply(refine(slow, (inside.shape[0], inside.shape[1], inside.shape[2])), np.float32(4.0), out=inside)
    inside += np.float32(level)


def _hilum(liver: Field3, grid: Grid3) -> tuple[float, float, float]:
    """Return the point of the liver from which vessels grow: its deepest point between the lobes."""
    z, y, x = grid.axes()
    near = (np.abs(x + 35) < 25) & (np.abs(z - 5) < 30)
    field = np.where(near, liver, np.float32(1e3))
    place = np.unravel_index(int(field.argmin()), field.shape)
    return float(z.ravel()[place[0]]), float(y.ravel()[place[1]]), float(x.ravel()[place[2]])


def _cava(volume: Field3, grid: Grid3, liver: Field3, coarse: Grid3, level: float) -> None:
    """Paint the caval vein behind the liver without cutting into it."""
    _, y, x = coarse.axes()
    tube = np.sqrt((x + 22) ** 2 + (y - np.float32(48)) ** 2) - np.float32(11)
    blend(volume, refine(np.maximum(tube, np.float32(0.5) - liver), grid.shape), level, float(grid.spacing[2]))


def _marks(
    liver: Field3, coarse: Grid3, grid: Grid3, tumours: NDArray[np.bool_], inside: Field3, level: float
) -> tuple[tuple[float, float, float], ...]:
    """Return three clicks: the deepest clear points of the right lobe, the left lobe and the lower right part."""
    z, y, x = coarse.axes()
    ratio = [n / m for n, m in zip(grid.shape, coarse.shape, strict=True)]
    regions = {"right": (x < -45) & (z > -10), "left": (x > -10) & (z > -60), "lower": (x < -40) & (z < -15)}
    points = []
    for name in _MARKS:
        depth = np.where(regions[name] & (liver < -6), liver, np.float32(0))
        for flat in np.argsort(depth, axis=None, kind="stable")[:400]:
            place = np.unravel_index(int(flat), depth.shape)
            if depth[place] >= 0:
                break
            at = [min(int((n + 0.5) * r), m - 1) for n, r, m in zip(place, ratio, grid.shape, strict=True)]
            box = tuple(slice(max(0, n - 2), n + 3) for n in at)
            if not tumours[box].any() and float(np.abs(inside[box] - level).max()) < 18:
                points.append((float(at[0]), float(at[1]), float(at[2])))
                break
    return tuple(points)


def _noise(rng: np.random.Generator, shape: tuple[int, int, int], spread: float) -> Field3:
    """Return noise with the grain of a CT: correlated over about a voxel within a slice, independent between slices."""
    field = rng.standard_normal(shape, dtype=np.float32)
    for axis in (1, 2):
        field = (np.roll(field, 1, axis) + np.roll(field, -1, axis)) * np.float32(0.25) + field * np.float32(0.5)
    # (1/4, 1/2, 1/4) reduces the variance to 3/8 along each of two axes, so the factor is known.
    field *= np.float32(spread * 8 / 3)
    return field
