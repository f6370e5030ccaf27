"""Geometry of effects of kind ``warp``: fields of displacements, applied to pictures, masks and points.

A field holds two float16 numbers for each pixel of the prepared size, (right, down) in pixels: a follow-up shows at
(x, y) what its source shows at (x + right, y + down). Pixel centres lie on whole numbers.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import Displacements, Effect, Image, Mask

_STEPS = 12
"""Newton steps of :func:`warp_points`; four suffice for smooth fields."""
_AROUND = np.array([(0.5, 0.0), (-0.5, 0.0), (0.0, 0.5), (0.0, -0.5)])
"""Places beside a point between which the field's slope is taken."""
_RIGHT, _BELOW = np.s_[:-1, 1:], np.s_[1:, :-1]
"""Neighbours of all pixels but those of the last row and column."""
_GENTLE = 0.99
"""Sum of a field's largest changes to the right and downwards up to which its determinant, 1 less that sum at least, is
above 0."""
_ROWS = 64
"""Rows of a field whose folds are looked for at once."""
_ZERO: Any = 0.0
_OPENCV_HALVES = int(cv2.__version__.partition(".")[0]) >= 5
"""Whether OpenCV calculates with float16."""


def warp_effect(displacements: ArrayLike) -> Effect:
    """Return the effect of a warp.

    Args:
        displacements: H×W×2 numbers, see the module; they are rounded to float16.

    Raises:
        ValueError: The shape is another one, a displacement is not finite, or the field folds the picture
            (:func:`folds`).
    """
    numbers = np.ascontiguousarray(displacements)
    if numbers.ndim != 3 or numbers.shape[2] != 2:
        raise ValueError(f"a field of displacements has H×W×2 numbers, not {'×'.join(map(str, numbers.shape))}")
    field = _rounded(numbers)
    wide = _widened(field)
    if not math.isfinite(sum(cv2.sumElems(wide))):  # summed in float64, which no float32 overflows
        raise ValueError("a displacement is not a finite number of at most 65504 pixels")
    if folds(wide):
        raise ValueError("the field folds the picture: its Jacobian determinant is not positive everywhere")
    field.setflags(write=False)
    return Effect(kind="warp", data={"displacements": hashlib.sha256(field.data).hexdigest()}, displacements=field)


def folds(field: NDArray[np.floating]) -> bool:
    """Return True if a field shows a part of the source twice or mirrored: a Jacobian determinant is 0 or less.

    Args:
        field: H×W×2, see the module. The determinant is taken from differences of neighbouring pixels.
    """
    wide = np.asarray(field, dtype=np.float32)
    if min(wide.shape[:2]) < 2:
        return False
    across, down = (cv2.norm(wide[place], wide[:-1, :-1], cv2.NORM_INF) for place in (_RIGHT, _BELOW))
    if across + down < _GENTLE:
        return False
    # In blocks that stay in the processor's cache.
    return any(_folds_within(*cv2.split(wide[row : row + _ROWS + 1])) for row in range(0, len(wide) - 1, _ROWS))


def _folds_within(right: NDArray[Any], below: NDArray[Any]) -> bool:
    stretched, turned = (plane[_RIGHT] - plane[:-1, :-1] for plane in (right, below))
    stretched += 1.0
    other = below[_BELOW] - below[:-1, :-1]
    other += 1.0
    stretched *= other
    turned *= np.subtract(right[_BELOW], right[:-1, :-1], out=other)
    return bool((stretched <= turned).any())


def warp_image(image: Image, field: Displacements) -> Image:
    """Return a picture warped by a field of its size: bilinear; pixels from outside repeat the nearest of the edge.

    Args:
        image: uint8 H×W×3 or H×W.
        field: float16 H×W×2, see the module.
    """
    columns, rows = _places(_widened(field))
    return np.asarray(cv2.remap(image, columns, rows, cv2.INTER_LINEAR, None, cv2.BORDER_REPLICATE), dtype=np.uint8)


def warp_mask(mask: Mask, field: Displacements) -> Mask:
    """Return a mask warped by a field: nearest neighbour, False for pixels that come from outside.

    Args:
        mask: bool H×W of the prepared or another size, to which the field is then scaled.
        field: float16, see the module.
    """
    scaled = _widened(field)
    if mask.shape != field.shape[:2]:
        height, width = mask.shape
        stretch = np.array([width / field.shape[1], height / field.shape[0]], dtype=np.float32)
        scaled = cv2.resize(scaled, (width, height), interpolation=cv2.INTER_LINEAR) * stretch
    columns, rows = _places(scaled)
    moved = cv2.remap(np.ascontiguousarray(mask).view(np.uint8), columns, rows, cv2.INTER_NEAREST)
    return np.asarray(moved, dtype=np.uint8).view(np.bool_)


def warp_points(points: ArrayLike, field: Displacements) -> NDArray[np.float64]:
    """Return the places of a source's points in the follow-up, the inverse of the field by Newton's method.

    Args:
        points: …×2 pixels (x, y) of the prepared size, not rounded. Displacements outside the picture are those of its
            nearest pixel.
        field: float16, see the module.

    Returns:
        float64 of the points' shape.
    """
    targets = np.asarray(points, dtype=np.float64)
    flat = targets.reshape(-1, 2)
    moved = flat - _sampled(field, flat)
    for _ in range(_STEPS):
        beside = (moved + offset for offset in _AROUND)
        here, right, left, lower, upper = _sampled(field, np.stack([moved, *beside])).reshape(5, -1, 2)
        missing = moved + here - flat
        if (np.abs(missing) < 1e-3).all():
            break
        across, down = right - left, lower - upper
        determinant = np.maximum((1.0 + across[:, 0]) * (1.0 + down[:, 1]) - across[:, 1] * down[:, 0], 0.05)
        rightwards = ((1.0 + down[:, 1]) * missing[:, 0] - down[:, 0] * missing[:, 1]) / determinant
        downwards = ((1.0 + across[:, 0]) * missing[:, 1] - across[:, 1] * missing[:, 0]) / determinant
        moved = moved - np.stack([rightwards, downwards], axis=1)
    return moved.reshape(targets.shape)


def _places(field: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    height, width = field.shape[:2]
    columns = field[..., 0] + np.arange(width, dtype=np.float32)
    rows = field[..., 1] + np.arange(height, dtype=np.float32)[:, None]
    return np.asarray(columns, dtype=np.float32), np.asarray(rows, dtype=np.float32)


def _sampled(field: Displacements, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the field between its pixels, bilinearly; of the points' shape."""
    height, width = field.shape[:2]
    x, y = np.clip(points[..., 0], 0, width - 1), np.clip(points[..., 1], 0, height - 1)
    left, top = np.minimum(x.astype(np.int64), max(width - 2, 0)), np.minimum(y.astype(np.int64), max(height - 2, 0))
    right, bottom = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    u, v = (x - left)[..., None], (y - top)[..., None]
    pairs = field.reshape(-1, 2)
    # The few numbers that are needed are widened, not the whole field.
    corners = [_widened(pairs.take(row * width + column, axis=0)) for row in (top, bottom) for column in (left, right)]
    upper, lower = (corners[row] * (1.0 - u) + corners[row + 1] * u for row in (0, 2))
    return np.asarray(upper * (1.0 - v) + lower * v)


def _rounded(numbers: NDArray[Any]) -> Displacements:
    """Return numbers as float16."""
    if _OPENCV_HALVES and numbers.dtype == np.float32 and numbers.size:  # a fifth of NumPy's time, the same bits
        return np.asarray(cv2.subtract(numbers, _ZERO, dtype=cv2.CV_16F), np.float16)
    return np.asarray(numbers, np.float16)


def _widened(halves: Displacements) -> NDArray[np.float32]:
    """Return float16 numbers as float32."""
    if _OPENCV_HALVES and halves.dtype == np.float16 and halves.size:
        return np.asarray(cv2.subtract(halves, _ZERO, dtype=cv2.CV_32F), np.float32)
    return np.asarray(halves, np.float32)
