"""Motion blur as in ImageMagick: a half Gaussian along a line, with taps rounded to whole pixels.

Tap i of ``2 ceil(radius) + 1`` has the weight exp(−i² / 2σ²), normalised to sum 1, and reads the pixel at
offset (ceil(i cos θ − ½), ceil(i sin θ − ½)), with replicated edges. These are the
formulas of ``MagickMotionBlurImage``, which the published code calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import exp

_TAIL = 2e-4
"""Total weight of trailing taps that are dropped; they change no grey level by more than 0.1."""
_BOX = 11
"""Longest side of a part of the line.

Up to 11×11 OpenCV filters directly and visits only non-zero taps; larger kernels use Fourier transforms, which take
several times as long.
"""


_Part: TypeAlias = tuple[int, int, NDArray[np.float32]]
"""Part of the line: row and column of its top-left corner, and its weights."""


def line_taps(radius: float, sigma: float, degrees: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the taps of a motion blur.

    Args:
        radius: In pixels, ≥ 0.
        sigma: Standard deviation of the Gaussian in pixels, > 0.
        degrees: Direction, clockwise from the right.

    Returns:
        int64 N×2 offsets (row, column) and float64 N weights that sum to 1.
    """
    index = np.arange(2 * math.ceil(radius) + 1)
    weights = exp(-(index**2) / (2.0 * sigma**2))
    weights /= weights.sum()
    angle = math.radians(degrees)
    offsets = np.stack([_nearest(index * math.sin(angle)), _nearest(index * math.cos(angle))], axis=1)
    return offsets, weights


def _nearest(values: NDArray[np.floating]) -> NDArray[np.int64]:
    # Rounding first keeps sines of exactly one half from falling to either side by their last bit.
    return np.ceil(np.round(values - 0.5, 9)).astype(np.int64)


def motion_blur(image: NDArray[Any], *, radius: float, sigma: float, degrees: float) -> NDArray[np.float32]:
    """Blur a picture along a line.

    Args:
        image: H×W or H×W×C, uint8 or float32.
        radius: As in :func:`line_taps`, whose taps are used without the negligible tail.
        sigma: As in :func:`line_taps`.
        degrees: As in :func:`line_taps`.

    Returns:
        float32 of the image's shape.
    """
    return _filter(image, _parts(radius, sigma, degrees))


def blur_along(image: NDArray[Any], offsets: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """Blur a picture with the taps of a line.

    Args:
        image: H×W or H×W×C, uint8 or float32; edges are replicated.
        offsets: int64 N×2 (row, column), neighbouring taps at most a pixel apart.
        weights: float64 N.

    Returns:
        float32 of the image's shape.
    """
    return _filter(image, [_as_part(offsets[piece], weights[piece]) for piece in _pieces(offsets)])


def _filter(image: NDArray[Any], parts: Sequence[_Part]) -> NDArray[np.float32]:
    height, width = image.shape[:2]
    top = max(0, -min(row for row, _, _ in parts))
    left = max(0, -min(column for _, column, _ in parts))
    bottom = max(0, max(row + kernel.shape[0] - 1 for row, _, kernel in parts))
    right = max(0, max(column + kernel.shape[1] - 1 for _, column, kernel in parts))
    padded = cv2.copyMakeBorder(
        image.astype(np.float32, copy=False), top, bottom, left, right, borderType=cv2.BORDER_REPLICATE
    )
    total: NDArray[np.float32] | None = None
    for row, column, kernel in parts:
        rows, columns = height + kernel.shape[0] - 1, width + kernel.shape[1] - 1
        view = padded[top + row : top + row + rows, left + column : left + column + columns]
        blurred = cv2.filter2D(view, -1, kernel, anchor=(0, 0), borderType=cv2.BORDER_REPLICATE)
        inside = blurred[:height, :width]
        total = np.array(inside, np.float32) if total is None else np.add(total, inside, out=total)
    return np.asarray(total, dtype=np.float32)


@lru_cache(maxsize=128)
def _parts(radius: float, sigma: float, degrees: float) -> tuple[_Part, ...]:
    offsets, weights = line_taps(radius, sigma, degrees)
    left_over = weights[::-1].cumsum()[::-1]
    count = max(1, int(np.count_nonzero(left_over > _TAIL)))
    offsets, weights = offsets[:count], weights[:count] / weights[:count].sum()
    return tuple(_as_part(offsets[piece], weights[piece]) for piece in _pieces(offsets))


def _pieces(offsets: NDArray[np.int64]) -> Iterator[slice]:
    """Cut the line into stretches that fit a box."""
    start = 0
    for end in range(1, len(offsets) + 1):
        if end == len(offsets) or np.ptp(offsets[start : end + 1], axis=0).max() >= _BOX:
            yield slice(start, end)
            start = end


def _as_part(offsets: NDArray[np.int64], weights: NDArray[np.float64]) -> _Part:
    low, high = offsets.min(axis=0), offsets.max(axis=0)
    kernel = np.zeros(high - low + 1)
    np.add.at(kernel, tuple((offsets - low).T), weights)  # two taps may fall on one pixel
    return int(low[0]), int(low[1]), kernel.astype(np.float32)
