"""Post-processing of bool volumes: largest part, hole filling, rim."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask3 = NDArray[np.bool_]


def bounding_box(mask: Mask3, margin: int = 0) -> tuple[slice, ...]:
    """Return the bounding box of a mask, widened by a margin in voxels; empty slices for an empty mask."""
    box = []
    for axis in range(mask.ndim):
        filled = np.flatnonzero(mask.any(axis=tuple(n for n in range(mask.ndim) if n != axis)))
        if not filled.size:
            return (slice(0, 0),) * mask.ndim
        box.append(slice(max(0, int(filled[0]) - margin), min(mask.shape[axis], int(filled[-1]) + 1 + margin)))
    return tuple(box)


def largest_part(mask: Mask3, *, fill: bool = False) -> Mask3:
    """Return the largest connected part (faces touching), optionally with its holes filled."""
    from scipy import ndimage

    largest = np.zeros_like(mask)
    box = bounding_box(mask)
    part = mask[box]
    if not part.size:
        return largest
    labels, count = ndimage.label(part)
    if count > 1:
        sizes = np.bincount(labels.ravel())
        sizes[0] = 0
        part = labels == int(sizes.argmax())
    del labels
    largest[box] = ndimage.binary_fill_holes(part) if fill else part
    return largest


def with_rim(mask: Mask3, volume: NDArray[Any], level: float, reach: float) -> Mask3:
    """Return a region extended by touching voxels of similar value.

    Smoothing and thresholds miss the voxels that a surface cuts. One step across faces is added where a value lies
    within ``reach`` of the region's level.

    Args:
        mask: bool D×H×W.
        volume: Its values.
        level: Typical value of the region.
        reach: About half the difference to the surroundings.
    """
    from scipy import ndimage

    box = bounding_box(mask, 1)
    part = mask[box]
    grown = ndimage.binary_dilation(part)
    grown &= ~part
    places = np.nonzero(grown)
    near = np.abs(np.asarray(volume[box])[places] - level) <= reach
    extended = mask.copy()
    extended[box][tuple(axis[near] for axis in places)] = True
    return extended
