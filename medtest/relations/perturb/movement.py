"""Effect of a transform, from coordinates that went through it: nothing moves, a matrix, or a field."""

from __future__ import annotations

import contextlib
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Mask
from medtest.core.errors import NotApplicable
from medtest.core.oracles.warps import folds, warp_effect
from medtest.relations.perturb.library import Grid

_STILL = 0.02
"""Largest displacement in pixels of a picture that does not move."""
_EXACT = 0.7
"""Largest distance in pixels, each way, of places by a matrix from those of a library with nearest neighbours."""
_SAMPLES = 61
"""Rows and columns of places at which a matrix is fitted."""
_MIXED = 0.001
"""Largest share of what lies outside in a pixel of the source."""
_EDGE = 0.5
"""Width in pixels of the source's edge, whose pixels libraries repeat or mix with what lies outside."""
_SEAM = 1.0
"""Standard deviation in pixels of the smoothing of a field with seams."""
_BEYOND = 15
"""Side in pixels of the smoothing of a field beyond the edge."""
_LARGEST_SEAM = 1.5
"""Largest change in pixels of a field by that smoothing."""
_FOLDED = (
    "it repeats, mirrors or folds parts of the picture, where masks cannot follow: choose a lesser distortion, or "
    "edges that are filled"
)
_SHARE = 0.02
"""Least share of places that must come from the source."""


@lru_cache(maxsize=4)
def coordinates(height: int, width: int) -> Grid:
    """Return the places of a picture's pixels, float32 H×W×3: column, row and 1. Read-only."""
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    grid = np.stack([columns, rows, np.ones_like(rows)], axis=2)
    grid.setflags(write=False)
    return grid


def effect_of(moved: Grid) -> Effect:
    """Return the effect of a transform that moved :func:`coordinates`.

    Args:
        moved: The coordinates at their new places, H×W×3; its third channel is 1 where they come from the source.

    Raises:
        NotApplicable: Parts of the picture are repeated, mirrored or folded, or nothing of it is left.
    """
    height, width = moved.shape[:2]
    rows, columns = _sampled(height), _sampled(width)
    places = moved[np.ix_(rows, columns)].reshape(-1, 3)
    grid = coordinates(height, width)[np.ix_(rows, columns)].reshape(-1, 3)
    inside = _inside(places[:, 0], places[:, 1], places[:, 2], moved.shape[:2])
    if np.count_nonzero(inside) < max(_SHARE * inside.size, 6):
        raise NotApplicable("it moves the picture out of its frame")
    after, before = grid[inside].astype(np.float64), places[inside].astype(np.float64)
    if np.abs(after[:, :2] - before[:, :2]).max() < _STILL and _still(moved):
        return Effect()
    matrix = _matrix(after[:, :2], before[:, :2])
    if matrix is not None:
        return Effect(kind="move", data={"matrix": matrix.tolist()})
    return _warp(moved)


def _sampled(size: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, size - 1, min(_SAMPLES, size)).round().astype(np.int64))


def _still(moved: Grid) -> bool:
    """Return True if nothing moves anywhere, away from what was covered."""
    across, down, mixed = cv2.split(cv2.absdiff(moved, coordinates(*moved.shape[:2])))
    return not ((cv2.max(across, down) >= _STILL) & (mixed < _MIXED)).any()


def _inside(
    columns: NDArray[np.float32], rows: NDArray[np.float32], shares: NDArray[np.float32], size: tuple[int, ...]
) -> Mask:
    """Return True for places that come from the source, away from its edge."""
    inside = np.abs(shares - 1.0) < _MIXED
    inside &= (columns > _EDGE) & (columns < size[1] - 1 - _EDGE)
    inside &= (rows > _EDGE) & (rows < size[0] - 1 - _EDGE)
    return np.asarray(inside)


def _matrix(after: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the 3×3 matrix from old to new places, rounded; None if there is none.

    It is fitted to old places from new ones, which are off by at most half a pixel.
    """
    homogeneous = np.column_stack([after, np.ones(len(after))])
    affine, _, rank, _ = np.linalg.lstsq(homogeneous, before, rcond=None)
    if rank == 3 and np.abs(homogeneous @ affine - before).max() < _EXACT:
        return _inverse(np.vstack([affine.T, [0.0, 0.0, 1.0]]), 6)
    perspective = _perspective(after, before)
    mapped = homogeneous @ perspective.T
    if (mapped[:, 2] <= 1e-6).any() or np.abs(mapped[:, :2] / mapped[:, 2:] - before).max() >= _EXACT:
        return None
    return _inverse(perspective, 9)


def _perspective(after: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the 3×3 matrix from new to old places by linear least squares over some of them."""
    size = max(float(after.max()), 1.0)
    chosen = slice(None, None, max(len(after) // 400, 1))
    x, y = after[chosen].T / size
    u, v = before[chosen].T / size
    unit, zero = np.ones_like(x), np.zeros_like(x)
    rows = [[x, y, unit, zero, zero, zero, -u * x, -u * y], [zero, zero, zero, x, y, unit, -v * x, -v * y]]
    system = np.concatenate([np.stack(row, axis=1) for row in rows])
    solved = np.linalg.lstsq(system, np.concatenate([u, v]), rcond=None)[0]
    scaled = np.append(solved, 1.0).reshape(3, 3)
    return np.asarray(np.diag([size, size, 1.0]) @ scaled @ np.diag([1.0 / size, 1.0 / size, 1.0]))


def _inverse(matrix: NDArray[np.float64], decimals: int) -> NDArray[np.float64] | None:
    if abs(np.linalg.det(matrix)) < 1e-9:
        return None
    inverse = np.linalg.inv(matrix)
    return np.asarray(np.round(inverse / inverse[2, 2], decimals) + 0.0, np.float64)


def _warp(moved: Grid) -> Effect:
    """Return the effect of a field; pixels from outside are displaced like the nearest of the inside."""
    height, width = moved.shape[:2]
    columns, rows, shares = (np.asarray(plane, np.float32) for plane in cv2.split(moved))
    inside = _inside(columns, rows, shares, (height, width))
    across = columns - np.arange(width, dtype=np.float32)
    down = rows - np.arange(height, dtype=np.float32)[:, None]
    outside = np.flatnonzero(~inside)
    field = _extended(np.asarray(cv2.merge([across, down]), np.float32), inside, outside)
    if not folds(field):
        with contextlib.suppress(ValueError):
            return warp_effect(field)
    # Distortions by cells repeat a row or a column where cells meet.
    even = np.asarray(cv2.GaussianBlur(field, (0, 0), _SEAM), np.float32)
    change = cv2.absdiff(even, field).reshape(-1, 2)
    change[outside] = 0.0
    if change.max() > _LARGEST_SEAM:
        raise NotApplicable(_FOLDED)
    # Beyond the edge only smoothness matters.
    even.reshape(-1, 2)[outside] = cv2.blur(field, (_BEYOND, _BEYOND)).reshape(-1, 2)[outside]
    try:
        return warp_effect(even)
    except ValueError:
        raise NotApplicable(_FOLDED) from None


def _extended(field: NDArray[np.float32], inside: Mask, outside: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return a field continued outwards from the nearest pixels of the inside; ``outside`` are the other pixels."""
    if outside.size == 0:
        return field
    far = (~inside).view(np.uint8)
    _, labels = cv2.distanceTransformWithLabels(far, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL)
    # Labels number the pixels of the inside, in their order, from 1.
    nearest = np.flatnonzero(inside)[labels.reshape(-1)[outside] - 1]
    flat = field.reshape(-1, 2)
    flat[outside] = flat[nearest]
    return field
