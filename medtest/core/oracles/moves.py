"""Geometry of effects of kind ``move``, applied to masks and points.

A matrix is 2×3 (affine) or 3×3 (perspective) numbers that map a source pixel (x, y) to its place in the follow-up, at
the prepared size; pixel centres lie on whole numbers. ``prepared`` is (rows, columns) of the prepared image, needed if
the mask or points belong to a picture of another size.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import Effect, Mask


def moved_mask(mask: Mask, effect: Effect) -> Mask:
    """Return the mask of a prepared source moved to its place in the follow-up; unchanged if nothing moves.

    Args:
        mask: bool H×W, of the prepared size.
        effect: Effect of the relation.
    """
    return move_mask(mask, effect.data["matrix"]) if effect.kind == "move" else mask


def move_mask(mask: Mask, matrix: Any, *, prepared: tuple[int, int] | None = None) -> Mask:
    """Move a mask by a relation's matrix: nearest neighbour, False for pixels that come from outside.

    Args:
        mask: bool H×W.
        matrix: See the module.
        prepared: See the module.
    """
    height, width = mask.shape
    moved = cv2.warpPerspective(
        np.ascontiguousarray(mask).view(np.uint8),
        _full_matrix(matrix, (height, width), prepared),
        (width, height),
        flags=cv2.INTER_NEAREST,
    )
    return np.asarray(moved, dtype=np.uint8).view(np.bool_)


def move_points(
    points: ArrayLike, matrix: Any, *, size: tuple[int, int] | None = None, prepared: tuple[int, int] | None = None
) -> NDArray[np.float64]:
    """Move points by a relation's matrix; they may leave the picture.

    Args:
        points: …×2 pixels (x, y), not rounded.
        matrix: See the module.
        size: Rows and columns of the points' picture, if it is not the prepared one.
        prepared: See the module; required with ``size``.

    Returns:
        float64 of the points' shape.
    """
    coordinates = np.asarray(points, dtype=np.float64)
    x, y = coordinates[..., 0], coordinates[..., 1]
    # Summed term by term, because the sum in a matrix product depends on the processor.
    right, down, far = (row[0] * x + row[1] * y + row[2] for row in _full_matrix(matrix, size, prepared))
    return np.stack([right / far, down / far], axis=-1)


def _full_matrix(matrix: Any, size: tuple[int, int] | None, prepared: tuple[int, int] | None) -> NDArray[np.float64]:
    """Return the 3×3 matrix scaled to a picture's size."""
    full = np.eye(3)
    core = np.asarray(matrix, dtype=np.float64)
    full[: core.shape[0]] = core
    if size is None or prepared is None or size == prepared:
        return full
    rows, columns = size[0] / prepared[0], size[1] / prepared[1]
    # a pixel centre x of the prepared image lies at (x + 0.5) * factor - 0.5 of the other one
    up = np.array([[columns, 0, (columns - 1) / 2], [0, rows, (rows - 1) / 2], [0, 0, 1.0]])
    return np.asarray(up @ full @ np.linalg.inv(up), dtype=np.float64)
