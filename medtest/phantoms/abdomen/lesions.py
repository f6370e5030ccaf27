"""Contents of the liver: a tree of vessels, and tumours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.abdomen.shapes import Field3, Grid3

Point = NDArray[np.float64]


def paint_vessels(rng: np.random.Generator, volume: Field3, grid: Grid3, root: Sequence[float], level: float) -> None:
    """Paint a portal tree that grows from the hilum, in place.

    Args:
        rng: Stream of random numbers.
        volume: Hounsfield units.
        grid: Voxels.
        root: The hilum: z, y, x in millimetres.
        level: Hounsfield units of blood.
    """
    for direction in ((0.25, 0.1, -1.0), (0.35, -0.5, 0.8), (-0.6, 0.2, -0.7)):
        for start, end, radius in _branches(rng, np.asarray(root, float), np.asarray(direction), (34.0, 5.0), 4):
            _tube(volume, grid, start, end, radius, level)


def _branches(
    rng: np.random.Generator, start: Point, direction: Point, size: tuple[float, float], depth: int
) -> Iterator[tuple[Point, Point, float]]:
    """Yield start, end and radius of each vessel of a tree; ``size`` is length and radius of the first."""
    length, radius = size
    norm = float(np.sqrt((direction**2).sum()))
    end = start + length * direction / norm
    yield start, end, radius
    for _ in range(2 if depth > 1 else 0):
        turned = direction / norm + rng.normal(0, 0.55, 3)
        yield from _branches(rng, end, turned, (length * 0.72, radius * 0.72), depth - 1)


def _tube(volume: Field3, grid: Grid3, start: Point, end: Point, radius: float, level: float) -> None:
    """Paint one capsule, processing only the box around it."""
    window, (z, y, x) = _window(grid, np.minimum(start, end) - radius - 3, np.maximum(start, end) + radius + 3)
    if window is None:
        return
    along = end - start
    squared = float((along**2).sum())
    reach = ((z - start[0]) * along[0] + (y - start[1]) * along[1] + (x - start[2]) * along[2]) / squared
    share = np.clip(reach, 0, 1)
    distance = np.sqrt(
        (z - start[0] - share * along[0]) ** 2
        + (y - start[1] - share * along[1]) ** 2
        + (x - start[2] - share * along[2]) ** 2
    )
    _paint(volume, window, distance - radius, level, float(grid.spacing[2]))


def paint_tumours(
    rng: np.random.Generator, volume: Field3, grid: Grid3, liver: Field3, count: int, level: float
) -> NDArray[np.bool_]:
    """Paint tumours within the liver, in place.

    Args:
        rng: Stream of random numbers.
        volume: Hounsfield units.
        grid: Voxels.
        liver: Distance to the liver, negative inside.
        count: Number of tumours tried.
        level: Hounsfield units of a tumour's centre; its rim blends into the surroundings.

    Returns:
        bool D×H×W, True on tumours.
    """
    tumours = np.zeros(grid.shape, np.bool_)
    axes = [axis.ravel() for axis in grid.axes()]
    inner = np.argwhere(liver[::4, ::4, ::4] < -14) * 4
    for _ in range(count if len(inner) else 0):
        where = inner[int(rng.integers(len(inner)))]
        centre = np.array([axis[n] for axis, n in zip(axes, where, strict=True)], float)
        half = float(rng.uniform(6.0, 16.0)) * (1 + 0.2 * rng.standard_normal(3).clip(-1.5, 1.5))
        window, (z, y, x) = _window(grid, centre - half - 3, centre + half + 3)
        if window is None:
            continue
        unit = ((z - centre[0]) / half[0]) ** 2 + ((y - centre[1]) / half[1]) ** 2 + ((x - centre[2]) / half[2]) ** 2
        distance = np.maximum((np.sqrt(unit) - 1) * float(half.min()), liver[window] + 1.5)
        _paint(volume, window, distance, level, 2 * float(grid.spacing[2]))
        tumours[window] |= distance < 0
    return tumours


def _window(grid: Grid3, low: Point, high: Point) -> tuple[Any, tuple[Any, Any, Any]]:
    """Return the slices of a box in millimetres and its axes; None if it is outside the grid."""
    slices, axes = [], []
    for number, axis in enumerate(grid.axes()):
        line = axis.ravel()
        indices = np.flatnonzero((line >= low[number]) & (line <= high[number]))
        if not indices.size:
            return None, (0, 0, 0)
        slices.append(slice(int(indices[0]), int(indices[-1]) + 1))
        axes.append(line[slices[-1]].reshape([-1 if n == number else 1 for n in range(3)]))
    return tuple(slices), (axes[0], axes[1], axes[2])


def _paint(volume: Field3, window: Any, distance: Any, level: float, width: float) -> None:
    share = np.clip(0.5 - distance / width, 0, 1).astype(np.float32)
    part = volume[window]
    part += share * (np.float32(level) - part)
