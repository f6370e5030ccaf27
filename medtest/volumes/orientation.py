"""Orientation of volumes: properties from a header, and rotation of arrays to z, y, x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.files.images import BadFileError

MOST_BYTES = 4 * 2**30
"""Largest size of a volume's float32 values in bytes."""
_SAME_PLACE_MM = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeInfo:
    """Properties of a volume, in medtest's axes.

    Attributes:
        shape: Voxels along z, y, x.
        spacing: Voxel size, millimetres.
        origin: Position of the centre of voxel (0, 0, 0) in the patient, millimetres (z, y, x).
    """

    shape: tuple[int, int, int]
    spacing: tuple[float, float, float]
    origin: tuple[float, float, float]

    def differs(self, other: VolumeInfo) -> str:
        """Return the reason why another volume cannot be the labels of this one, or ""."""
        if self.shape != other.shape:
            own_shape, other_shape = ("×".join(map(str, info.shape)) for info in (self, other))
            return f"is {other_shape} voxels, but its image is {own_shape}"
        if not np.allclose(self.spacing, other.spacing, rtol=1e-2):
            return "has a different voxel size from its image"
        reach = _SAME_PLACE_MM + 0.1 * max(self.spacing)
        return (
            "" if np.allclose(self.origin, other.origin, atol=reach) else "has another position in space than its image"
        )


def check_size(shape: Sequence[int]) -> None:
    """Check that a shape is that of a volume within bounds.

    Raises:
        BadFileError: The shape is not a volume's or is too large; the message gives the reason.
    """
    if len(shape) != 3 or min(shape) < 1:
        raise BadFileError("is not a volume with three axes")
    if 4 * int(np.prod([int(n) for n in shape], dtype=object)) > MOST_BYTES:
        size = "×".join(str(n) for n in shape)
        raise BadFileError(f"has {size} voxels; the bound is {MOST_BYTES // 4:,} voxels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Conversion of an array's axes to z, y, x.

    Attributes:
        order: Axes of the array that become z, y, x.
        flipped: Whether each of z, y, x is reversed.
        info: Properties after conversion.
    """

    order: tuple[int, int, int]
    flipped: tuple[bool, bool, bool]
    info: VolumeInfo

    def apply(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a view of an array with the axes z, y, x."""
        turned = array.transpose(self.order)
        return turned[tuple(slice(None, None, -1 if flip else 1) for flip in self.flipped)]


def turn_of(matrix: NDArray[Any], origin: NDArray[Any], shape: Sequence[int]) -> Turn:
    """Return the conversion of an array's axes.

    Args:
        matrix: 3×3; column n is a step along the array's axis n in the patient (left, back, head), millimetres.
        origin: Position of voxel (0, 0, 0) (left, back, head), millimetres.
        shape: Shape of the array.

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
    weights = np.abs(cosines)
    axis_of = [-1, -1, -1]
    for _ in range(3):
        row, column = (int(n) for n in np.unravel_index(int(weights.argmax()), weights.shape))
        axis_of[row] = column
        weights[row, :] = -1
        weights[:, column] = -1
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
