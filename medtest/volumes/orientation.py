"""Where a volume's axes point: what a header says, and how an array is turned to z, y, x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.files.images import BadFileError

MOST_BYTES = 4 * 2**30
"""Bound on a volume's values as float32."""
_SAME_PLACE_MM = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeInfo:
    """What a header says, turned to our axes.

    Attributes:
        shape: Voxels along z, y, x.
        spacing: Their size, millimetres.
        origin: Place of voxel (0, 0, 0)'s middle in the patient, millimetres (z, y, x).
    """

    shape: tuple[int, int, int]
    spacing: tuple[float, float, float]
    origin: tuple[float, float, float]

    def differs(self, other: VolumeInfo) -> str:
        """Return why another volume cannot be this one's labels, or ""."""
        if self.shape != other.shape:
            own, found = ("×".join(map(str, info.shape)) for info in (self, other))
            return f"is {found} voxels, but its image is {own}"
        if not np.allclose(self.spacing, other.spacing, rtol=1e-2):
            return "has voxels of another size than its image"
        reach = _SAME_PLACE_MM + 0.1 * max(self.spacing)
        return "" if np.allclose(self.origin, other.origin, atol=reach) else "lies elsewhere in space than its image"


def check_size(shape: Sequence[int]) -> None:
    """Refuse what is no volume, or too large.

    Raises:
        BadFileError: With the reason.
    """
    if len(shape) != 3 or min(shape) < 1:
        raise BadFileError("is no volume of three axes")
    if 4 * int(np.prod([int(n) for n in shape], dtype=object)) > MOST_BYTES:
        size = "×".join(str(n) for n in shape)
        raise BadFileError(f"has {size} voxels; the bound is {MOST_BYTES // 4:,} voxels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """How an array's axes become ours.

    Attributes:
        order: Which of the array's axes becomes z, y, x.
        flipped: Which of ours run against the array's.
        info: The header after turning.
    """

    order: tuple[int, int, int]
    flipped: tuple[bool, bool, bool]
    info: VolumeInfo

    def apply(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a view of an array with our axes."""
        turned = array.transpose(self.order)
        return turned[tuple(slice(None, None, -1 if flip else 1) for flip in self.flipped)]


def turn_of(matrix: NDArray[Any], origin: NDArray[Any], shape: Sequence[int]) -> Turn:
    """Work out how an array is turned.

    Args:
        matrix: 3×3; column n is what a step along the array's axis n is in the patient (left, back, head), millimetres.
        origin: Where voxel (0, 0, 0) lies (left, back, head), millimetres.
        shape: The array's.

    Raises:
        BadFileError: The axes do not span space.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    lengths = np.sqrt((matrix**2).sum(axis=0))
    if not np.isfinite(matrix).all() or lengths.min() <= 1e-6 or lengths.max() > 1e4:
        raise BadFileError("has a header whose axes or voxel sizes make no sense")
    cosines = matrix / lengths
    if abs(np.linalg.det(cosines)) < 0.1:
        raise BadFileError("has a header whose axes make no sense")
    left = np.abs(cosines)
    axis_of = [-1, -1, -1]
    for _ in range(3):
        row, column = (int(n) for n in np.unravel_index(int(left.argmax()), left.shape))
        axis_of[row] = column
        left[row, :] = -1
        left[:, column] = -1
    order = (axis_of[2], axis_of[1], axis_of[0])
    flipped = tuple(bool(cosines[body, own] < 0) for body, own in zip((2, 1, 0), order, strict=True))
    corner = np.asarray(origin, dtype=np.float64).copy()
    for own, flip in zip(order, flipped, strict=True):
        if flip:
            corner += matrix[:, own] * (int(shape[own]) - 1)
    sides = [int(shape[own]) for own in order]
    steps = [float(lengths[own]) for own in order]
    info = VolumeInfo(
        shape=(sides[0], sides[1], sides[2]),
        spacing=(steps[0], steps[1], steps[2]),
        origin=(float(corner[2]), float(corner[1]), float(corner[0])),
    )
    return Turn(order=order, flipped=(flipped[0], flipped[1], flipped[2]), info=info)
