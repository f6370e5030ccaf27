"""Geometry of effects of kind ``warp``: fields of displacements, applied to pictures, masks and points.

A field holds two float16 numbers for each pixel of the prepared size, (right, down) in pixels: a follow-up shows at
(x, y) what its source shows at (x + right, y + down). Pixel centres lie on whole numbers.
"""

from __future__ import annotations

import hashlib

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import Displacements, Effect, Image, Mask

_STEPS = 12
"""Newton steps of :func:`warp_points`; four suffice for smooth fields."""


def warp_effect(displacements: ArrayLike) -> Effect:
    """Return the effect of a warp.

    Args:
        displacements: H×W×2 numbers, see the module; they are rounded to float16.

    Raises:
        ValueError: The shape is another one, a displacement is not finite, or the field folds the picture
            (:func:`folds`).
    """
    field = np.ascontiguousarray(displacements, dtype=np.float16)
    if field.ndim != 3 or field.shape[2] != 2:
        raise ValueError(f"a field of displacements has H×W×2 numbers, not {'×'.join(map(str, field.shape))}")
    wide = np.asarray(field, dtype=np.float32)
    if not np.isfinite(wide).all():  # faster than of float16
        raise ValueError("a displacement is not a finite number of at most 65504 pixels")
    if folds(wide):
        raise ValueError("the field folds the picture: its Jacobian determinant is not positive everywhere")
    field.setflags(write=False)
    return Effect(kind="warp", data={"displacements": hashlib.sha256(field.tobytes()).hexdigest()}, displacements=field)


def folds(field: NDArray[np.floating]) -> bool:
    """Return True if a field shows a part of the source twice or mirrored: a Jacobian determinant is 0 or less.

    Args:
        field: H×W×2, see the module. The determinant is taken from differences of neighbouring pixels.
    """
    wide = np.asarray(field, dtype=np.float32)
    right, below = (np.ascontiguousarray(wide[..., axis]) for axis in (0, 1))  # planes are faster than pairs
    (right_x, right_y), (below_x, below_y) = (
        (plane[:-1, 1:] - plane[:-1, :-1], plane[1:, :-1] - plane[:-1, :-1]) for plane in (right, below)
    )
    determinant = (1.0 + right_x) * (1.0 + below_y) - below_x * right_y
    return bool((determinant <= 0.0).any())


def warp_image(image: Image, field: Displacements) -> Image:
    """Return a picture warped by a field of its size: bilinear; pixels from outside repeat the nearest of the edge.

    Args:
        image: uint8 H×W×3 or H×W.
        field: float16 H×W×2, see the module.
    """
    columns, rows = _places(np.asarray(field, dtype=np.float32))
    return np.asarray(cv2.remap(image, columns, rows, cv2.INTER_LINEAR, None, cv2.BORDER_REPLICATE), dtype=np.uint8)


def warp_mask(mask: Mask, field: Displacements) -> Mask:
    """Return a mask warped by a field: nearest neighbour, False for pixels that come from outside.

    Args:
        mask: bool H×W of the prepared or another size, to which the field is then scaled.
        field: float16, see the module.
    """
    scaled = np.asarray(field, dtype=np.float32)
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
        missing = moved + _sampled(field, moved) - flat
        if (np.abs(missing) < 1e-3).all():
            break
        across = _sampled(field, moved + (0.5, 0.0)) - _sampled(field, moved - (0.5, 0.0))
        down = _sampled(field, moved + (0.0, 0.5)) - _sampled(field, moved - (0.0, 0.5))
        determinant = np.maximum((1.0 + across[:, 0]) * (1.0 + down[:, 1]) - across[:, 1] * down[:, 0], 0.05)
        right = ((1.0 + down[:, 1]) * missing[:, 0] - down[:, 0] * missing[:, 1]) / determinant
        below = ((1.0 + across[:, 0]) * missing[:, 1] - across[:, 1] * missing[:, 0]) / determinant
        moved = moved - np.stack([right, below], axis=1)
    return moved.reshape(targets.shape)


def _places(field: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    height, width = field.shape[:2]
    columns = field[..., 0] + np.arange(width, dtype=np.float32)
    rows = field[..., 1] + np.arange(height, dtype=np.float32)[:, None]
    return np.asarray(columns, dtype=np.float32), np.asarray(rows, dtype=np.float32)


def _sampled(field: Displacements, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the field between its pixels, bilinearly; N×2."""
    height, width = field.shape[:2]
    x, y = np.clip(points[:, 0], 0, width - 1), np.clip(points[:, 1], 0, height - 1)
    left, top = np.minimum(x.astype(np.int64), max(width - 2, 0)), np.minimum(y.astype(np.int64), max(height - 2, 0))
    right, bottom = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    u, v = (x - left)[:, None], (y - top)[:, None]
    # The few numbers that are needed are widened, not the whole field.
    corners = [
        field[places].astype(np.float64) for places in ((top, left), (top, right), (bottom, left), (bottom, right))
    ]
    upper, lower = (corners[row] * (1.0 - u) + corners[row + 1] * u for row in (0, 2))
    return np.asarray(upper * (1.0 - v) + lower * v)
