"""Liver shapes: a mean shape and its modes, which define a smooth surface.

Millimetres in the body: x from the patient's right to the left, y from front to back, z from foot to head, 0 in the
middle of the body. The liver is a smooth union of four ellipsoids (right lobe, its lower part, left lobe, caudate lobe)
minus the hollow pressed in by stomach and bowel, minus the spine, within the body's wall. A shape is a vector of
coefficients, independent and of unit variance in the population: ten change the ellipsoids as livers differ (size,
length of the left lobe, Riedel's lobe …), six bend space by quadratic polynomials.

Array operations are limited to + - * / and square roots, so that the same coefficients give the same bytes on every
machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Field3: TypeAlias = NDArray[np.float32]

MODES: tuple[str, ...] = (
    "size",
    "left lobe, length",
    "left lobe, thickness",
    "lower right lobe (Riedel)",
    "depth",
    "height",
    "tilt",
    "hollow below",
    "left lobe, drop",
    "width",
    "bend of x by z",
    "bend of x by y and z",
    "bend of y by x and z",
    "bend of z by x",
    "bend of z by x and y",
    "bend of y by z",
)

_MEAN: dict[str, tuple[float, ...]] = {
    "right": (-68.0, 0.0, 15.0, 64.0, 74.0, 70.0),
    "lower": (-86.0, 10.0, -40.0, 40.0, 50.0, 50.0),
    "left": (15.0, -42.0, 30.0, 76.0, 36.0, 34.0),
    "caudate": (-22.0, 18.0, 25.0, 32.0, 30.0, 38.0),
}
"""Centre x, y, z and half axes of the mean liver's ellipsoids, millimetres."""

_EFFECTS: dict[int, dict[str, tuple[float, ...]]] = {
    1: {"left": (9.0, 0.0, 0.0, 14.0, 0.0, 0.0)},
    2: {"left": (0.0, 0.0, 0.0, 0.0, 4.0, 5.0)},
    3: {"lower": (0.0, 0.0, -14.0, 0.0, 0.0, 10.0)},
    4: {"right": (0.0, 0.0, 0.0, 0.0, 8.0, 0.0), "lower": (0.0, 0.0, 0.0, 0.0, 6.0, 0.0)},
    5: {"right": (0.0, 0.0, 3.0, 0.0, 0.0, 7.0)},
    8: {"left": (0.0, 0.0, -10.0, 0.0, 0.0, 0.0)},
    9: {"right": (-3.0, 0.0, 0.0, 6.0, 0.0, 0.0), "lower": (-3.0, 0.0, 0.0, 4.0, 0.0, 0.0)},
}
"""Change of the numbers above per standard deviation of a mode."""

_PIVOT = (-50.0, 0.0, 10.0)
_SIZE, _TILT, _HOLLOW, _BEND = 0.06, 0.10, 7.0, 4.0
_HOLLOW_AT = (22.0, 15.0, -78.0, 78.0)
_UNION, _CUT = 18.0, 14.0
_SMALLEST = 14.0
CAVITY = (142.0, 93.0)
"""Half axes of the inside of the body's wall, millimetres (x, y)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid3:
    """A grid of voxels around the body's middle.

    Attributes:
        shape: Slices, rows, columns.
        spacing: Voxel size along z, y, x in millimetres.
    """

    shape: tuple[int, int, int]
    spacing: tuple[float, float, float]

    def axes(self) -> tuple[Field3, Field3, Field3]:
        """Return z (D×1×1), y (1×H×1) and x (1×1×W) of the voxels' centres, millimetres, float32."""
        axes = []
        for axis, (length, step) in enumerate(zip(self.shape, self.spacing, strict=True)):
            place = ((np.arange(length) - (length - 1) / 2) * step).astype(np.float32)
            axes.append(place.reshape([-1 if n == axis else 1 for n in range(3)]))
        return axes[0], axes[1], axes[2]

    def coarser(self, factor: int) -> Grid3:
        """Return a grid over the same space with voxels ``factor`` times as large."""
        shape = tuple(max(2, -(-length // factor)) for length in self.shape)
        spacing = tuple(n * s / m for n, s, m in zip(self.shape, self.spacing, shape, strict=True))
        return Grid3(shape=(shape[0], shape[1], shape[2]), spacing=(spacing[0], spacing[1], spacing[2]))


def liver_distance(grid: Grid3, coefficients: Sequence[float], *, shift: Sequence[float] = (0.0, 0.0, 0.0)) -> Field3:
    """Return the approximate distance of each voxel from the liver in millimetres; negative inside.

    Args:
        grid: Voxels.
        coefficients: One value for each of :data:`MODES`.
        shift: Displacement from the mean position: z, y, x in millimetres.

    Returns:
        float32 D×H×W, accurate to about 20 per cent near the surface.
    """
    b = [float(c) for c in coefficients]
    if len(b) != len(MODES):
        raise ValueError(f"{len(b)} coefficients for {len(MODES)} modes")
    placed: list[Any] = [axis - np.float32(s) for axis, s in zip(grid.axes(), shift, strict=True)]
    x, y, z = _bent(placed[2], placed[1], placed[0], b)
    parts = {name: list(numbers) for name, numbers in _MEAN.items()}
    for mode, effects in _EFFECTS.items():
        for name, change in effects.items():
            parts[name] = [p + b[mode] * c for p, c in zip(parts[name], change, strict=True)]
    body: Field3 | None = None
    for numbers in parts.values():
        ellipsoid = _ellipsoid(x, y, z, numbers)
        body = ellipsoid if body is None else smooth_union(body, ellipsoid, _UNION)
    assert body is not None  # noqa: S101 - there are four parts
    hx, hy, hz, radius = _HOLLOW_AT
    hollow = _length(x - hx, y - hy, z - hz) - np.float32(max(30.0, radius + _HOLLOW * b[7]))
    return smooth_difference(body, hollow, _CUT)


def fitted_liver(grid: Grid3, coefficients: Sequence[float], *, shift: Sequence[float] = (0.0, 0.0, 0.0)) -> Field3:
    """Return :func:`liver_distance` limited to the body's wall and excluding the spine."""
    _, y, x = grid.axes()
    spine = np.float32(31.0) - np.sqrt(x * x + (y - np.float32(72)) ** 2)
    distance = liver_distance(grid, coefficients, shift=shift)
    fitted: Field3 = np.maximum(np.maximum(distance, ellipse_distance(x, y, *CAVITY) + 0.5), spine)
    return fitted


def _bent(x: Any, y: Any, z: Any, b: Sequence[float]) -> tuple[Field3, Field3, Field3]:
    """Return the positions of voxels in the mean liver's space, with size, tilt and bends undone."""
    u, v, w = x * np.float32(1 / 80), y * np.float32(1 / 80), z * np.float32(1 / 80)
    bend = [np.float32(_BEND * c) for c in b[10:16]]
    x = x + bend[0] * (w * w) + bend[1] * (v * w)
    y = y + bend[2] * (u * w) + bend[5] * (w * w)
    z = z + bend[3] * (u * u) + bend[4] * (u * v)
    px, py, pz = (np.float32(p) for p in _PIVOT)
    angle, size = _TILT * b[6], 1 / max(0.5, 1 + _SIZE * b[0])
    cosine, sine = np.float32(math.cos(angle) * size), np.float32(math.sin(angle) * size)
    x, y, z = x - px, (y - py) * np.float32(size), z - pz
    return cosine * x + sine * z + px, y + py, cosine * z - sine * x + pz


def _length(x: Any, y: Any, z: Any) -> Field3:
    norm: Field3 = np.sqrt(x * x + y * y + z * z)
    return norm


def _ellipsoid(x: Any, y: Any, z: Any, numbers: Sequence[float]) -> Field3:
    """Return the approximate distance to an ellipsoid: exact on its surface, first order near it."""
    cx, cy, cz = (np.float32(n) for n in numbers[:3])
    rx, ry, rz = (np.float32(max(_SMALLEST, n)) for n in numbers[3:])
    x, y, z = (x - cx) / rx, (y - cy) / ry, (z - cz) / rz
    inner = _length(x, y, z)
    slope: Any = _length(x / rx, y / ry, z / rz)
    distance: Field3 = inner * (inner - 1) / np.maximum(slope, np.float32(1e-4))
    return distance


def smooth_union(first: Field3, second: Field3, width: float) -> Field3:
    """Return the distance to two bodies joined by a fillet of ``width`` millimetres (polynomial smooth minimum)."""
    blend = np.maximum(np.float32(width) - np.abs(first - second), 0) * np.float32(1 / width)
    joined: Field3 = np.minimum(first, second) - blend * blend * np.float32(width / 4)
    return joined


def smooth_difference(body: Field3, removed: Field3, width: float) -> Field3:
    """Return the distance to one body minus another, with the edge rounded by ``width`` millimetres."""
    return np.negative(smooth_union(-body, removed, width))


def ellipse_distance(x: Field3, y: Field3, half_x: float, half_y: float) -> Field3:
    """Return the approximate distance to an upright elliptic cylinder around the body's centre."""
    u, v = x / np.float32(half_x), y / np.float32(half_y)
    inner = np.sqrt(u * u + v * v)
    slope = np.sqrt((u / np.float32(half_x)) ** 2 + (v / np.float32(half_y)) ** 2)
    distance: Field3 = inner * (inner - 1) / np.maximum(slope, np.float32(1e-4))
    return distance


def refine(field: Field3, shape: tuple[int, int, int]) -> Field3:
    """Return a coarse field on a finer grid over the same space, trilinear, constant beyond the outer centres."""
    for axis, length in enumerate(shape):
        field = _stretch(field, axis, length)
    return np.ascontiguousarray(field)


def _stretch(field: Field3, axis: int, length: int) -> Field3:
    count = field.shape[axis]
    if count == length:
        return field
    place = np.clip((np.arange(length) + 0.5) * (count / length) - 0.5, 0, count - 1)
    first = np.minimum(place.astype(np.intp), count - 2)
    share = (place - first).astype(np.float32).reshape([-1 if n == axis else 1 for n in range(3)])
    low: Field3 = np.take(field, first, axis=axis)
    high: Field3 = np.take(field, first + 1, axis=axis)
    high -= low
    high *= share
    high += low
    return high
