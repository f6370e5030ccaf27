"""Shapes of sprites: closed lines with a tone, in a plane whose unit square the thing fills."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.drawing import curve, unit

Tone: TypeAlias = str
"""``main`` and its shades ``dark``, ``light`` and ``deep``, or one of :data:`medtest.phantoms.scenes.paint.FIXED`."""
XY: TypeAlias = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Shape:
    """Filled shape.

    Attributes:
        points: float64 n×2, x to the right and y downwards.
        tone: Fill tone.
        rings: Further closed lines; points inside an even number of lines stay empty.
    """

    points: NDArray[np.float64]
    tone: Tone
    rings: tuple[NDArray[np.float64], ...] = ()

    def lines(self) -> list[NDArray[np.float64]]:
        """Return all closed lines."""
        return [self.points, *self.rings]

    def moved(self, matrix: NDArray[np.float64], shift: NDArray[np.float64]) -> Shape:
        """Return the shape with its points multiplied by a matrix from the right, and shifted."""
        first, *others = (_times(line, matrix) + shift for line in self.lines())
        return replace(self, points=first, rings=tuple(others))


def _times(points: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    # Sums are written out, because BLAS adds in a different order on each processor.
    x, y = points[:, 0], points[:, 1]
    return np.stack([x * matrix[0, 0] + y * matrix[1, 0], x * matrix[0, 1] + y * matrix[1, 1]], axis=1)


def poly(tone: Tone, *points: XY) -> Shape:
    """Return a polygon."""
    return Shape(np.array(points, np.float64), tone)


def soft(tone: Tone, *points: XY) -> Shape:
    """Return a closed smooth shape through points."""
    return Shape(curve(points, 6, closed=True), tone)


def rect(tone: Tone, left: float, top: float, right: float, bottom: float) -> Shape:
    """Return a rectangle."""
    return poly(tone, (left, top), (right, top), (right, bottom), (left, bottom))


def rounded(tone: Tone, left: float, top: float, right: float, bottom: float, radius: float) -> Shape:
    """Return a rectangle with rounded corners."""
    radius = min(radius, 0.5 * (right - left), 0.5 * (bottom - top))
    corners = (
        (right - radius, bottom - radius), (left + radius, bottom - radius),
        (left + radius, top + radius), (right - radius, top + radius),
    )  # fmt: skip
    points = []
    for quarter, (x, y) in enumerate(corners):
        for step in range(5):
            c, s = unit((quarter + step / 4.0) / 4.0)
            points.append((x + radius * c, y + radius * s))
    return poly(tone, *points)


def ring_points(x: float, y: float, a: float, b: float, start: float = 0.0, end: float = 1.0) -> NDArray[np.float64]:
    """Return points of an ellipse's arc; turns start at the right and go downwards."""
    count = max(4, math.ceil(32 * (end - start)))
    steps = [unit(start + (end - start) * step / count) for step in range(count + 1)]
    return np.array([(x + a * c, y + b * s) for c, s in steps], np.float64)


def oval(tone: Tone, x: float, y: float, a: float, b: float | None = None) -> Shape:
    """Return an ellipse of half axes ``a`` and ``b``; a circle without ``b``."""
    return Shape(ring_points(x, y, a, a if b is None else b)[:-1], tone)


def arc(tone: Tone, x: float, y: float, a: float, b: float, start: float, end: float) -> Shape:
    """Return a segment of an ellipse between two turns, closed by a straight line."""
    return Shape(ring_points(x, y, a, b, start, end), tone)


def hoop(tone: Tone, x: float, y: float, a: float, b: float, width: float, height: float | None = None) -> Shape:
    """Return an ellipse with a hole; the rim is ``width`` wide at the sides and ``height`` at top and bottom."""
    hole = ring_points(x, y, a - width, b - (width if height is None else height))[:-1]
    return Shape(ring_points(x, y, a, b)[:-1], tone, (hole,))


def bar(tone: Tone, width: float, *points: XY, smooth: bool = False) -> Shape:
    """Return a line of a given width, with flat ends.

    Args:
        tone: Fill tone.
        width: Its width.
        points: Points on the line, two or more.
        smooth: Whether the line is a smooth curve.
    """
    at = curve(points, 6) if smooth else np.array(points, np.float64)
    along = np.gradient(at, axis=0)
    lengths = np.sqrt(along[:, :1] * along[:, :1] + along[:, 1:] * along[:, 1:])
    along = along / np.maximum(lengths, 1e-9)
    across = np.stack([-along[:, 1], along[:, 0]], axis=1) * (0.5 * width)
    return Shape(np.concatenate([at + across, (at - across)[::-1]]), tone)


def taper(tone: Tone, wide: float, narrow: float, start: XY, end: XY) -> Shape:
    """Return a straight limb that is ``wide`` at its start and ``narrow`` at its end."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.sqrt(dx * dx + dy * dy)
    nx, ny = -dy / length, dx / length
    a, b = 0.5 * wide, 0.5 * narrow
    return poly(
        tone,
        (start[0] + nx * a, start[1] + ny * a), (end[0] + nx * b, end[1] + ny * b),
        (end[0] - nx * b, end[1] - ny * b), (start[0] - nx * a, start[1] - ny * a),
    )  # fmt: skip


def wheel(x: float, y: float, a: float, b: float) -> list[Shape]:
    """Return a tyre with a hub."""
    return [oval("tyre", x, y, a, b), oval("metal", x, y, 0.5 * a, 0.5 * b), oval("tyre", x, y, 0.15 * a, 0.15 * b)]


def fitted(shapes: Sequence[Shape], turn: float, mirrored: bool) -> list[Shape]:
    """Return shapes rotated, optionally mirrored, and stretched to fill the unit square."""
    c, s = unit(turn)
    matrix = np.array([[-c if mirrored else c, s], [s if mirrored else -s, c]], np.float64)
    turned = [shape.moved(matrix, np.zeros(2)) for shape in shapes]
    ends = [line for shape in turned for line in shape.lines()]
    low = np.min([line.min(0) for line in ends], axis=0)
    high = np.max([line.max(0) for line in ends], axis=0)
    grow = np.diag(1.0 / np.maximum(high - low, 1e-9))
    return [shape.moved(grow, -low * np.diag(grow)) for shape in turned]
