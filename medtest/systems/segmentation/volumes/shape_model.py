"""Statistical model of an organ's shape: principal components of signed distances.

Leventon, Grimson, Faugeras: Statistical shape influence in geodesic active contours. CVPR 2000. Training organs are
aligned by their centroids, each is converted to the signed distance to its surface on one small grid (at most 64 voxels
per side), and the mean and first principal components of the distances are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Field3: TypeAlias = NDArray[np.float32]
MOST_SIDE = 64
CLIP_MM = 30.0
"""Larger distances carry no information about the shape, but would affect the components."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ShapeModel:
    """Mean shape and its modes, on a grid centred at the organ's centroid.

    Attributes:
        mean: float32 d×h×w, millimetres, negative inside.
        modes: float32 k×d×h×w; one standard deviation each, millimetres.
        spacing: Millimetres per voxel (z, y, x).
    """

    mean: Field3
    modes: Field3
    spacing: tuple[float, float, float]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the grid in voxels."""
        return self.mean.shape[0], self.mean.shape[1], self.mean.shape[2]

    def axes(self) -> list[NDArray[Any]]:
        """Return the voxels' positions along z, y, x in millimetres from the centroid."""
        return [(np.arange(n) - (n - 1) / 2) * s for n, s in zip(self.shape, self.spacing, strict=True)]


def learn_shape_model(
    masks: Iterable[tuple[NDArray[np.bool_], Sequence[float]]], *, modes: int = 12, finest_mm: float = 4.0
) -> ShapeModel:
    """Learn a model from training organs.

    Args:
        masks: Each organ as a bool mask with the size of its voxels in millimetres (z, y, x); volumes of one
            orientation.
        modes: Number of components; fewer if there are fewer organs.
        finest_mm: Minimum voxel size of the model's grid.

    Raises:
        ValueError: Fewer than two organs, or an empty one.
    """
    cut = [_cut(np.asarray(mask), spacing) for mask, spacing in masks]
    if len(cut) < 2:
        raise ValueError("a shape model needs at least two organs")
    extent = np.max([[n * s for n, s in zip(mask.shape, spacing, strict=True)] for mask, spacing, _ in cut], axis=0)
    # Margin on both sides: centroids are off centre, and distances outside count too.
    extent = 1.35 * extent + 40.0
    step = max(finest_mm, float(extent.max()) / MOST_SIDE)
    sides = [int(min(MOST_SIDE, np.ceil(e / step))) for e in extent]
    fields = np.stack([_distance(*organ, sides, step) for organ in cut])
    mean = fields.mean(axis=0)
    flat = (fields - mean).reshape(len(cut), -1).astype(np.float64)
    # With few shapes and many voxels, the small Gram matrix has the same non-zero eigenvalues.
    values, vectors = np.linalg.eigh(flat @ flat.T / (len(cut) - 1))
    order = [n for n in np.argsort(values)[::-1][:modes] if values[n] > 1e-6 * values.max()]
    flat_modes = [vectors[:, n] @ flat / np.sqrt(len(cut) - 1) for n in order]
    components = np.stack(flat_modes).reshape(-1, *mean.shape) if flat_modes else np.zeros((0, *mean.shape))
    return ShapeModel(mean=mean.astype(np.float32), modes=components.astype(np.float32), spacing=(float(step),) * 3)


def _cut(
    mask: NDArray[np.bool_], spacing: Sequence[float]
) -> tuple[NDArray[np.bool_], tuple[float, ...], NDArray[np.float64]]:
    """Return the organ's bounding box, its spacing, and its centroid in millimetres within the box."""
    if not mask.any():
        raise ValueError("an empty mask has no shape")
    window, centre = [], []
    for axis in range(3):
        profile = np.count_nonzero(mask, axis=tuple(n for n in range(3) if n != axis))
        filled = np.flatnonzero(profile)
        first, last = int(filled[0]), int(filled[-1]) + 1
        window.append(slice(first, last))
        centre.append(float(((np.arange(profile.size) + 0.5 - first) * profile).sum() / profile.sum() * spacing[axis]))
    return mask[tuple(window)].copy(), tuple(float(s) for s in spacing), np.array(centre)


def _distance(
    mask: NDArray[np.bool_], spacing: Sequence[float], centre: NDArray[np.float64], sides: Sequence[int], step: float
) -> Field3:
    """Return the signed distance on the model's grid, millimetres."""
    from scipy import ndimage

    soft = mask.astype(np.float32)
    # Finer than the grid: blur first, so that the sampled surface matches the organ's.
    blur = [max(0.0, 0.35 * step / s) for s in spacing]
    padded = np.pad(soft, 2)
    padded = ndimage.gaussian_filter(padded, blur, mode="constant")
    places = [
        ((np.arange(n) - (n - 1) / 2) * step + c) / s - 0.5 + 2 for n, c, s in zip(sides, centre, spacing, strict=True)
    ]
    share = sample(padded, places, outside=0.0)
    inside = share >= 0.5
    # The share itself gives the surface position to half a voxel; the transform counts whole voxels.
    outer = ndimage.distance_transform_edt(~inside, sampling=step) - step / 2
    inner = ndimage.distance_transform_edt(inside, sampling=step) - step / 2
    signed = np.where(inside, -inner, outer)
    near = (share > 0.02) & (share < 0.98)
    signed[near] = 0.5 * signed[near] + 0.5 * (0.5 - share[near]) * 2 * step
    return np.clip(signed, -CLIP_MM, CLIP_MM).astype(np.float32)


def sample(field: NDArray[Any], places: Sequence[NDArray[Any]], *, outside: float | None = None) -> Field3:
    """Sample a field on a grid of positions along its axes, trilinearly.

    Args:
        field: Float d×h×w.
        places: Index coordinates along each axis.
        outside: Value beyond the field; None extends its outermost values.
    """
    sampled: NDArray[Any] = np.asarray(field, dtype=np.float32)
    for axis, place in enumerate(places):
        length = sampled.shape[axis]
        inside = np.clip(place, 0, length - 1)
        first = np.minimum(inside.astype(np.intp), max(0, length - 2))
        column = [-1 if n == axis else 1 for n in range(3)]
        share = (inside - first).astype(np.float32).reshape(column)
        low = np.take(sampled, first, axis=axis)
        if length > 1:
            high = np.take(sampled, first + 1, axis=axis)
            high -= low
            high *= share
            low += high
        if outside is not None:
            beyond = np.flatnonzero((place < -0.5) | (place > length - 0.5))
            if beyond.size:
                low[(slice(None),) * axis + (beyond,)] = outside
        sampled = low
    return np.ascontiguousarray(sampled)
