"""Geometry of effects of kinds ``move`` and ``warp``, applied to masks and points.

A matrix is 2×3 (affine) or 3×3 (perspective) numbers that map a source pixel (x, y) to its place in the follow-up, at
the prepared size; pixel centres lie on whole numbers. ``prepared`` is (rows, columns) of the prepared image, needed if
the mask or points belong to a picture of another size.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import Effect, Image, Mask
from medtest.core.oracles.warps import warp_image, warp_mask, warp_points


def moved_mask(mask: Mask, effect: Effect, *, prepared: tuple[int, int] | None = None) -> Mask:
    """Return a source's mask moved to its place in the follow-up; unchanged if nothing moves, empty if it is removed.

    Args:
        mask: bool H×W.
        effect: Effect of the relation.
        prepared: See the module.
    """
    if effect.removes:
        return np.zeros_like(mask)
    if effect.displacements is not None:
        return warp_mask(mask, effect.displacements)
    return move_mask(mask, effect.data["matrix"], prepared=prepared) if effect.kind == "move" else mask


def moved_image(image: Image, effect: Effect) -> Image:
    """Return a prepared picture moved as its mask is, bilinear; black or the nearest pixels where it ends.

    Args:
        image: uint8 H×W×3.
        effect: Effect of the relation.
    """
    if effect.displacements is not None:
        return warp_image(image, effect.displacements)
    if effect.kind != "move":
        return image
    matrix = _full_matrix(effect.data["matrix"], None, None)
    return np.asarray(cv2.warpPerspective(image, matrix, (image.shape[1], image.shape[0]), flags=cv2.INTER_LINEAR))


def moved_points(
    points: ArrayLike, effect: Effect, *, size: tuple[int, int] | None = None, prepared: tuple[int, int] | None = None
) -> NDArray[np.float64]:
    """Return a source's points moved to their places in the follow-up; unchanged if nothing moves.

    Args:
        points: …×2 pixels (x, y), not rounded.
        effect: Effect of the relation.
        size: Rows and columns of the points' picture, if it is not the prepared one.
        prepared: See the module; required with ``size``.

    Returns:
        float64 of the points' shape.
    """
    if effect.displacements is None:
        matrix = effect.data["matrix"] if effect.kind == "move" else np.eye(3)
        return move_points(points, matrix, size=size, prepared=prepared)
    coordinates = np.asarray(points, dtype=np.float64)
    if size is None or prepared is None or size == prepared:
        return warp_points(coordinates, effect.displacements)
    factors = np.array([size[1] / prepared[1], size[0] / prepared[0]])
    moved = warp_points((coordinates + 0.5) / factors - 0.5, effect.displacements)
    return np.asarray((moved + 0.5) * factors - 0.5, dtype=np.float64)


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
