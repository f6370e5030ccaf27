"""What segmenters do to bool volumes at the end: keep the largest part, fill what it encloses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask3 = NDArray[np.bool_]


def bounding_box(mask: Mask3, margin: int = 0) -> tuple[slice, ...]:
    """Return the box around what is True, widened by a margin in voxels; empty slices where nothing is."""
    found = []
    for axis in range(mask.ndim):
        filled = np.flatnonzero(mask.any(axis=tuple(n for n in range(mask.ndim) if n != axis)))
        if not filled.size:
            return (slice(0, 0),) * mask.ndim
        found.append(slice(max(0, int(filled[0]) - margin), min(mask.shape[axis], int(filled[-1]) + 1 + margin)))
    return tuple(found)


def largest_part(mask: Mask3, *, fill: bool = False) -> Mask3:
    """Return the largest connected part (faces touching), optionally with its holes filled."""
    from scipy import ndimage

    found = np.zeros_like(mask)
    box = bounding_box(mask)
    part = mask[box]
    if not part.size:
        return found
    labels, count = ndimage.label(part)
    if count > 1:
        sizes = np.bincount(labels.ravel())
        sizes[0] = 0
        part = labels == int(sizes.argmax())
    del labels
    found[box] = ndimage.binary_fill_holes(part) if fill else part
    return found


def with_rim(mask: Mask3, volume: NDArray[Any], level: float, reach: float) -> Mask3:
    """Return a region with the voxels that touch it and are mostly of its kind.

    Smoothing and thresholds stop short of a surface by the voxels that it cuts. One step of faces is added where a
    value lies within ``reach`` of the region's level.

    Args:
        mask: bool D×H×W.
        volume: Its values.
        level: What the region mostly holds.
        reach: About half the step to what lies around it.
    """
    from scipy import ndimage

    box = bounding_box(mask, 1)
    part = mask[box]
    grown = ndimage.binary_dilation(part)
    grown &= ~part
    places = np.nonzero(grown)
    near = np.abs(np.asarray(volume[box])[places] - level) <= reach
    found = mask.copy()
    found[box][tuple(axis[near] for axis in places)] = True
    return found
