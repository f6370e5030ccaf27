"""Variability of an organ's shape: its share outside a standard box (Vacavant 2018, equation 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Placement: TypeAlias = Literal["centroid", "corner"]
Volume: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardBox:
    """Standard box.

    Attributes:
        size: Length along each axis of the mask, millimetres.
        offset: Offset of its centre from the organ's centroid, millimetres; only for placement ``centroid``.
    """

    size: tuple[float, ...]
    offset: tuple[float, ...] = ()


def mean_box(masks: Iterable[tuple[Volume, Sequence[float]]]) -> StandardBox:
    """Return the box of mean dimensions of a training set.

    Args:
        masks: Each organ as a bool mask, with the size of its voxels in millimetres.

    Returns:
        Mean dimensions of the organs' bounding boxes, and the mean offset of their centres from the centroids: an
        organ is rarely symmetric, and a box around the centroid would cut even the mean organ on its longer side.

    Raises:
        ValueError: No mask, or an empty one.
    """
    sizes, offsets = [], []
    for mask, spacing in masks:
        low, high, centre = _extent(mask, spacing)
        sizes.append(high - low)
        offsets.append((low + high) / 2 - centre)
    if not sizes:
        raise ValueError("a mean box needs at least one organ")
    return StandardBox(
        size=tuple(float(x) for x in np.mean(sizes, axis=0)), offset=tuple(float(x) for x in np.mean(offsets, axis=0))
    )


def liver_variability(
    mask: Volume, spacing: Sequence[float], box: StandardBox, *, placement: Placement = "centroid"
) -> float:
    """Return the share of an organ outside the standard box, per cent: 100 #(L minus BB) / #(L).

    Args:
        mask: bool D×H×W (or of any dimension).
        spacing: Size of a voxel along each axis, millimetres.
        box: The standard box.
        placement: ``centroid`` places the box by the organ's centroid and the box's offset (by the centroid alone if
            it has none); ``corner`` places it at the corner of the organ's bounding box nearest to index 0.

    Returns:
        From 0 to 100. A voxel counts by its centre.

    Raises:
        ValueError: The mask is empty, or the box has another number of axes.
    """
    if len(box.size) != mask.ndim:
        raise ValueError(f"a box of {len(box.size)} axes for a mask of {mask.ndim}")
    low, _, centre = _extent(mask, spacing)
    size = np.asarray(box.size)
    start = low if placement == "corner" else centre + (np.asarray(box.offset) if box.offset else 0.0) - size / 2
    inside: NDArray[Any] = mask
    for axis, (length, first, extent) in enumerate(zip(mask.shape, start, size, strict=True)):
        place = (np.arange(length) + 0.5) * spacing[axis]
        indices = np.flatnonzero((place >= first - 1e-9) & (place <= first + extent + 1e-9))
        inside = inside[(slice(None),) * axis + (slice(indices[0], indices[-1] + 1) if indices.size else slice(0, 0),)]
    total = int(np.count_nonzero(mask))
    return 100.0 * (total - int(np.count_nonzero(inside))) / total


def _extent(mask: Volume, spacing: Sequence[float]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return lower corner, upper corner and centroid of a mask, millimetres from the outer corner of voxel 0."""
    low, high, centre = [], [], []
    total = int(np.count_nonzero(mask))
    if not total:
        raise ValueError("an empty mask has no variability")
    for axis in range(mask.ndim):
        others = tuple(n for n in range(mask.ndim) if n != axis)
        profile = np.count_nonzero(mask, axis=others)
        filled = np.flatnonzero(profile)
        low.append(filled[0] * spacing[axis])
        high.append((filled[-1] + 1) * spacing[axis])
        centre.append(float(((np.arange(profile.size) + 0.5) * profile).sum()) / total * spacing[axis])
    return np.array(low), np.array(high), np.array(centre)
