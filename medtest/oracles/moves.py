"""Masks as a relation moves them: what an :class:`~medtest.cases.Effect` of kind ``move`` says, done to pixels."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.cases import Mask


def move_mask(mask: Mask, matrix: Any, *, prepared: tuple[int, int] | None = None) -> Mask:
    """Return a mask moved by a relation's matrix, nearest neighbour, False where nothing came from.

    Args:
        mask: bool H×W.
        matrix: 2×3 (affine) or 3×3 (perspective) numbers that map a source pixel (x, y) to its place in the follow-up,
            at the prepared size; pixel centres lie on whole numbers.
        prepared: Rows and columns of the prepared image, where ``mask`` has another size.
    """
    full = np.eye(3)
    given = np.asarray(matrix, dtype=np.float64)
    full[: given.shape[0]] = given
    height, width = mask.shape
    if prepared is not None and prepared != (height, width):
        full = _resized_matrix(full, (height / prepared[0], width / prepared[1]))
    moved = cv2.warpPerspective(
        np.ascontiguousarray(mask).view(np.uint8), full, (width, height), flags=cv2.INTER_NEAREST
    )
    return np.asarray(moved, dtype=np.uint8).view(np.bool_)


def _resized_matrix(matrix: NDArray[np.float64], factors: tuple[float, float]) -> NDArray[np.float64]:
    rows, columns = factors
    # a pixel centre x of the prepared image lies at (x + 0.5) * factor - 0.5 of the other one
    up = np.array([[columns, 0, (columns - 1) / 2], [0, rows, (rows - 1) / 2], [0, 0, 1.0]])
    return np.asarray(up @ matrix @ np.linalg.inv(up), dtype=np.float64)
