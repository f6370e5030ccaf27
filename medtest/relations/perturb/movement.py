"""Effect of a transform, from coordinates that went through it: nothing moves, a matrix, or a field."""

from __future__ import annotations

import contextlib
import math
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Mask
from medtest.core.errors import NotApplicable
from medtest.core.oracles.warps import folds, warp_effect
from medtest.relations.perturb.library import Grid
from medtest.relations.perturb.values import planes

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
_PAST_EDGE = float(np.nextafter(np.float32(_EDGE), np.float32(1.0)))
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
_NONE = np.zeros(0, np.int64)
_SHARE = 0.02
"""Least share of places that must come from the source."""


@lru_cache(maxsize=4)
def coordinates(height: int, width: int) -> Grid:
    """Return the places of a picture's pixels, float32 H×W×3: column, row and 1. Read-only."""
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    grid = np.stack([columns, rows, np.ones_like(rows)], axis=2)
    grid.setflags(write=False)
    return grid


@lru_cache(maxsize=4)
def coordinate_planes(height: int, width: int) -> NDArray[np.float32]:
    """Return :func:`coordinates` as 3×H×W. Read-only."""
    result = planes(coordinates(height, width))
    result.setflags(write=False)
    return result


def effect_of(moved: Grid) -> Effect:
    """Return the effect of a transform that moved :func:`coordinates`.

    Args:
        moved: The coordinates at their new places, H×W×3; its third channel is 1 where they come from the source.

    Raises:
        NotApplicable: Parts of the picture are repeated, mirrored or folded, or nothing of it is left.
    """
    size = moved.shape[0], moved.shape[1]
    chosen, grid = _sample(*size)
    if moved.strides[2] == moved.itemsize:
        columns, rows, shares = moved.reshape(-1, 3).take(chosen, axis=0).T.copy()
    else:
        columns, rows, shares = planes(moved).reshape(3, -1).take(chosen, axis=1)
    inside = np.flatnonzero(_inside(columns, rows, shares, size))
    if inside.size < max(_SHARE * chosen.size, 6):
        raise NotApplicable("it moves the picture out of its frame")
    after, before = grid.take(inside, axis=1), np.stack([columns, rows]).take(inside, axis=1).astype(np.float64)
    if np.abs(after - before).max() < _STILL and _still(moved):
        return Effect()
    matrix = _matrix(after, before)
    if matrix is not None:
        return Effect(kind="move", data={"matrix": matrix.tolist()})
    return _warp(moved)


@lru_cache(maxsize=4)
def _sample(height: int, width: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the pixels at which a matrix is fitted: their flat indices, and 2×N columns and rows."""
    down, across = (
        np.unique(np.linspace(0, size - 1, min(_SAMPLES, size)).round().astype(np.int64)) for size in (height, width)
    )
    rows, columns = (axis.reshape(-1) for axis in np.meshgrid(down, across, indexing="ij"))
    return rows * width + columns, np.stack([columns, rows]).astype(np.float64)


def _still(moved: Grid) -> bool:
    """Return True if nothing moves anywhere, away from what was covered."""
    if np.array_equal(moved, coordinates(*moved.shape[:2])):
        return True
    across, down, mixed = cv2.split(cv2.absdiff(np.ascontiguousarray(moved), coordinates(*moved.shape[:2])))
    return not ((cv2.max(across, down) >= _STILL) & (mixed < _MIXED)).any()


def _inside(
    columns: NDArray[np.float32], rows: NDArray[np.float32], shares: NDArray[np.float32], size: tuple[int, int]
) -> Mask:
    """Return True for places that come from the source, away from its edge."""
    limits = (size[1] - 1 - _EDGE, size[0] - 1 - _EDGE)
    across, down = (
        cv2.inRange(places, _PAST_EDGE, float(np.nextafter(np.float32(limit), np.float32(0.0))))
        for places, limit in zip((columns, rows), limits, strict=True)
    )
    whole = cv2.inRange(shares, 1.0 - _MIXED, 1.0 + _MIXED)
    return np.asarray(cv2.bitwise_and(cv2.bitwise_and(across, down), whole) != 0).reshape(columns.shape)


def _matrix(after: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the 3×3 matrix from old to new places, each 2×N, rounded; None if there is none.

    It is fitted to old places from new ones, which are off by at most half a pixel.
    """
    affine = _affine(after, before)
    if affine is not None and _distance(affine, after, before) < _EXACT:
        return _inverse(affine, 6)
    perspective = _perspective(after, before)
    return _inverse(perspective, 9) if _distance(perspective, after, before) < _EXACT else None


def _distance(matrix: NDArray[np.float64], after: NDArray[np.float64], before: NDArray[np.float64]) -> float:
    """Return the largest distance, each way, of old places from those by a matrix."""
    columns, rows, far = matrix[:, :2] @ after + matrix[:, 2:]
    if (far <= 1e-6).any():
        return math.inf
    return max(float(np.abs(each / far - old).max()) for each, old in zip((columns, rows), before, strict=True))


def _affine(after: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the 3×3 matrix from new to old places by linear least squares; None for places on a line."""
    middle, old_middle = after.mean(axis=1), before.mean(axis=1)
    new, old = after - middle[:, None], before - old_middle[:, None]
    spread = new @ new.T
    if np.linalg.det(spread) <= 1e-9 * spread[0, 0] * spread[1, 1]:
        return None
    matrix = np.eye(3)
    matrix[:2, :2] = np.linalg.solve(spread, new @ old.T).T
    matrix[:2, 2] = old_middle - matrix[:2, :2] @ middle
    return matrix


def _perspective(after: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the 3×3 matrix from new to old places by linear least squares over some of them."""
    size = max(float(after.max()), 1.0)
    chosen = slice(None, None, max(after.shape[1] // 400, 1))
    x, y = after[:, chosen] / size
    u, v = before[:, chosen] / size
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
    columns, rows, shares = np.asarray(planes(moved), np.float32)
    inside = _inside(columns, rows, shares, (height, width))
    across = columns - np.arange(width, dtype=np.float32)
    down = rows - np.arange(height, dtype=np.float32)[:, None]
    field, outside = _extended(np.asarray(cv2.merge([across, down]), np.float32), inside)
    if not folds(field):
        with contextlib.suppress(ValueError):
            return warp_effect(field)
    # Distortions by cells repeat a row or a column where cells meet.
    even = np.asarray(cv2.GaussianBlur(field, (0, 0), _SEAM), np.float32)
    if cv2.norm(even, field, cv2.NORM_INF, inside.view(np.uint8)) > _LARGEST_SEAM:
        raise NotApplicable(_FOLDED)
    if outside.size:
        # Beyond the edge only smoothness matters.
        even.reshape(-1, 2)[outside] = cv2.blur(field, (_BEYOND, _BEYOND)).reshape(-1, 2)[outside]
    try:
        return warp_effect(even)
    except ValueError:
        raise NotApplicable(_FOLDED) from None


def _extended(field: NDArray[np.float32], inside: Mask) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return a field continued outwards from the nearest pixels of the inside, and the flat indices of the others.

    Where the inside is a rectangle there are none: the continued field is as smooth as the inside.
    """
    left, top, width, height = cv2.boundingRect(inside.view(np.uint8))
    part = np.s_[top : top + height, left : left + width]
    if inside[part].all():
        bottom, right = inside.shape[0] - top - height, inside.shape[1] - left - width
        return np.asarray(cv2.copyMakeBorder(field[part], top, bottom, left, right, cv2.BORDER_REPLICATE)), _NONE
    outside = np.flatnonzero(~inside)
    _, labels = cv2.distanceTransformWithLabels(
        (~inside).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    # Labels number the pixels of the inside, in their order, from 1.
    nearest = np.flatnonzero(inside)[labels.reshape(-1)[outside] - 1]
    flat = field.reshape(-1, 2)
    flat[outside] = flat[nearest]
    return field, outside
