"""Effect of a transform, from coordinates that went through it: nothing moves, a matrix, or a field."""

from __future__ import annotations

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
_EXACT = 0.6
"""Largest distance in pixels between places by a matrix and by the library, whose nearest neighbours are 0.5 off."""
_SAMPLES = 24
"""Rows and columns of places at which a matrix is fitted."""
_MIXED = 0.001
"""Largest share of what lies outside in a pixel of the source."""
_EDGE = 0.5
"""Width in pixels of the source's edge, whose pixels libraries repeat or mix with what lies outside."""
_SEAM = 1.0
"""Standard deviation in pixels of the smoothing of a field with seams."""
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
    inside = _inside(places, moved.shape[:2])
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


def _inside(places: NDArray[np.float32], size: tuple[int, ...]) -> Mask:
    """Return True for places (…×3) that come from the source, away from its edge."""
    columns, rows, shares = places[..., 0], places[..., 1], places[..., 2]
    inside = np.abs(shares - 1.0) < _MIXED
    inside &= (columns > _EDGE) & (columns < size[1] - 1 - _EDGE)
    inside &= (rows > _EDGE) & (rows < size[0] - 1 - _EDGE)
    return np.asarray(inside)


def _matrix(after: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the 3×3 matrix from old to new places, six decimals; None if there is none."""
    ones = np.column_stack([before, np.ones(len(before))])
    affine, _, rank, _ = np.linalg.lstsq(ones, after, rcond=None)
    if rank == 3 and np.abs(ones @ affine - after).max() < _EXACT:
        return np.asarray(np.round(np.vstack([affine.T, [0.0, 0.0, 1.0]]), 6) + 0.0, np.float64)
    perspective = np.asarray(cv2.findHomography(before, after, 0)[0], np.float64)
    if perspective.shape != (3, 3):
        return None
    mapped = ones @ perspective.T
    if (mapped[:, 2] <= 1e-6).any() or np.abs(mapped[:, :2] / mapped[:, 2:] - after).max() >= _EXACT:
        return None
    return np.asarray(np.round(perspective, 9) + 0.0, np.float64)


def _warp(moved: Grid) -> Effect:
    """Return the effect of a field; pixels from outside are displaced like the nearest of the inside."""
    inside = _inside(moved, moved.shape[:2])
    field = moved[..., :2] - coordinates(*moved.shape[:2])[..., :2]
    if not inside.all():
        field = _extended(field, inside)
    if folds(field):
        # Distortions by cells repeat a row or a column where cells meet.
        even = np.asarray(cv2.GaussianBlur(field, (0, 0), _SEAM), np.float32)
        if np.abs(even - field)[inside].max(initial=0.0) > _LARGEST_SEAM:
            raise NotApplicable(_FOLDED)
        # Beyond the edge only smoothness matters.
        field = np.where(inside[..., None], even, cv2.GaussianBlur(field, (0, 0), 4.0 * _SEAM))
    try:
        return warp_effect(field)
    except ValueError:
        raise NotApplicable(_FOLDED) from None


def _extended(field: NDArray[np.float32], inside: Mask) -> NDArray[np.float32]:
    """Return a field continued outwards from the nearest pixels of the inside."""
    outside = np.ascontiguousarray(~inside).view(np.uint8)
    _, labels = cv2.distanceTransformWithLabels(outside, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL)
    nearest = np.zeros((int(labels.max()) + 1, 2), np.float32)
    nearest[labels[inside]] = field[inside]
    return np.where(inside[..., None], field, nearest[labels])
