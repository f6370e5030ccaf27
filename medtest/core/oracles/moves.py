"""What an :class:`~medtest.core.cases.Effect` of kind ``move`` says, done to masks and to points.

A matrix is 2×3 (affine) or 3×3 (perspective) numbers that map a source pixel (x, y) to its place in the follow-up, at
the prepared size; pixel centres lie on whole numbers. ``prepared`` are rows and columns of the prepared image, where
what is moved belongs to a picture of another size.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import Effect, Mask


def moved_mask(mask: Mask, effect: Effect) -> Mask:
    """Return the mask of a prepared source as it lies in the follow-up, the same one where nothing moves.

    Args:
        mask: bool H×W, of the prepared size.
        effect: What the relation did.
    """
    return move_mask(mask, effect.data["matrix"]) if effect.kind == "move" else mask


def move_mask(mask: Mask, matrix: Any, *, prepared: tuple[int, int] | None = None) -> Mask:
    """Return a mask moved by a relation's matrix, nearest neighbour, False where nothing came from.

    Args:
        mask: bool H×W.
        matrix: See the module.
        prepared: See the module.
    """
    height, width = mask.shape
    moved = cv2.warpPerspective(
        np.ascontiguousarray(mask).view(np.uint8),
        _whole(matrix, (height, width), prepared),
        (width, height),
        flags=cv2.INTER_NEAREST,
    )
    return np.asarray(moved, dtype=np.uint8).view(np.bool_)


def move_points(
    points: ArrayLike, matrix: Any, *, size: tuple[int, int] | None = None, prepared: tuple[int, int] | None = None
) -> NDArray[np.float64]:
    """Return points moved by a relation's matrix; they may leave the picture.

    Args:
        points: …×2 pixels (x, y), not rounded.
        matrix: See the module.
        size: Rows and columns of the picture that they lie in, where that is not the prepared one.
        prepared: See the module; goes with ``size``.

    Returns:
        float64 of the points' shape.
    """
    given = np.asarray(points, dtype=np.float64)
    x, y = given[..., 0], given[..., 1]
    # term by term: the sum of a matrix product depends on the processor
    right, down, far = (row[0] * x + row[1] * y + row[2] for row in _whole(matrix, size, prepared))
    return np.stack([right / far, down / far], axis=-1)


def _whole(matrix: Any, size: tuple[int, int] | None, prepared: tuple[int, int] | None) -> NDArray[np.float64]:
    """Return the 3×3 matrix of a picture of a size."""
    full = np.eye(3)
    given = np.asarray(matrix, dtype=np.float64)
    full[: given.shape[0]] = given
    if size is None or prepared is None or size == prepared:
        return full
    rows, columns = size[0] / prepared[0], size[1] / prepared[1]
    # a pixel centre x of the prepared image lies at (x + 0.5) * factor - 0.5 of the other one
    up = np.array([[columns, 0, (columns - 1) / 2], [0, rows, (rows - 1) / 2], [0, 0, 1.0]])
    return np.asarray(up @ full @ np.linalg.inv(up), dtype=np.float64)
