"""Smooth random fields and curves, the basis of all drawings.

Only operations that IEEE 754 rounds exactly (``+ - * /`` and square roots) and OpenCV's resampling are used on
arrays: exponentials and trigonometric functions differ by a bit between instruction sets of one architecture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Field: TypeAlias = NDArray[np.float32]
"""float32 h×w."""
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class PixelGrid:
    """Pixel coordinates: (0, 0) is the centre of the field of view, 1 is half its short side.

    Attributes:
        x: float32 1×w, increasing to the right.
        y: float32 h×1, downwards.
        step: Width of one pixel in these units.
    """

    x: Field
    y: Field
    step: float

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.y.shape[0]), int(self.x.shape[1])


def as_field(array: Any) -> Field:
    """Return the array as contiguous float32."""
    return np.ascontiguousarray(array, dtype=np.float32)


def resize(array: NDArray[Any], shape: tuple[int, int], *, smooth: bool = True) -> Field:
    """Resample to ``shape`` (rows, columns), cubic if ``smooth``, else bilinear."""
    mode = cv2.INTER_CUBIC if smooth else cv2.INTER_LINEAR
    return as_field(cv2.resize(array, (shape[1], shape[0]), interpolation=mode))


def value_noise(rng: np.random.Generator, shape: tuple[int, int], cell: float, *, smooth: bool = True) -> Field:
    """Return noise of mean 0 and standard deviation of about 0.75 whose features are ``cell`` pixels wide."""
    rows = max(3, int(shape[0] / cell) + 2)
    columns = max(3, int(shape[1] / cell) + 2)
    return resize(rng.standard_normal((rows, columns), dtype=np.float32), shape, smooth=smooth)


def smoothstep(array: Field, low: float, high: float) -> Field:
    """Return 0 below ``low``, 1 above ``high`` and the cubic 3t² - 2t³ between."""
    t = np.clip((array - np.float32(low)) * np.float32(1.0 / (high - low)), 0.0, 1.0)
    return as_field(t * t * (3.0 - 2.0 * t))


def ellipse_radius(
    x: Field, y: Field, centre: Point, *, turn: Point = (1.0, 0.0), stretch: float = 1.0
) -> tuple[Field, Field, Field]:
    """Return distance from a centre and unit direction (x, y) in a frame turned by a unit vector and stretched in y."""
    dx, dy = as_field(x - np.float32(centre[0])), as_field(y - np.float32(centre[1]))
    cosine, sine = np.float32(turn[0]), np.float32(turn[1])
    u = as_field(dx * cosine + dy * sine)
    v = as_field((dy * cosine - dx * sine) * np.float32(stretch))
    radius = np.sqrt(u * u + v * v + np.float32(1e-6))
    return as_field(radius), as_field(u / radius), as_field(v / radius)


def harmonics(c: Field, s: Field, weights: Iterable[Any]) -> Field:
    """Return Σ aₙ cos nθ + bₙ sin nθ for n = 2, 3, …, from cos θ and sin θ by the angle-addition formulas."""
    total = np.zeros_like(c)
    cn, sn = c, s
    for a, b in weights:
        cn, sn = cn * c - sn * s, sn * c + cn * s
        total += np.float32(a) * cn + np.float32(b) * sn
    return total


def pick(rng: np.random.Generator, weights: Mapping[str, float]) -> str:
    """Draw a name by its weight; the weights sum to 1."""
    names = list(weights)
    return names[int(rng.choice(len(names), p=list(weights.values())))]


def direction(rng: np.random.Generator) -> tuple[float, float]:
    """Return a random unit vector."""
    while True:
        x, y = (float(v) for v in rng.uniform(-1.0, 1.0, 2))
        square = x * x + y * y
        if 0.01 < square <= 1.0:
            length = square**0.5
            return x / length, y / length
