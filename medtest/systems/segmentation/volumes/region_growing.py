"""Semi-automatic segmenter: regions grown from a person's clicks.

Similar to, but not a copy of, SmartPaint (Malmberg and others 2017), which the (α, σ) paper tests: the clicks give
position and brightness of the organ, the region grows through voxels of similar brightness, and narrow bridges to
neighbours are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting

from medtest.core.cases import Image, ImageSpec
from medtest.core.errors import BadOutput
from medtest.systems.base import Segmenter, SystemSettings
from medtest.systems.segmentation.volumes.regions import bounding_box, with_rim

Mask3 = NDArray[np.bool_]
_SAMPLE_MM = 5.0
_SLAB = 16


class RegionGrowingSettings(SystemSettings):
    """Settings of region growing.

    Attributes:
        smooth: Standard deviation of the initial smoothing, millimetres.
        width: Tolerance around the level at the clicks, in standard deviations measured there.
        least: Minimum tolerance in Hounsfield units.
        bridge: Bridges narrower than twice this are cut, millimetres.
        close: Gaps (vessels, small tumours) narrower than twice this are closed, millimetres.
        rim: Surface voxels are added if they are within this distance of the level at the clicks, Hounsfield units.
        reach: Maximum distance from the nearest click, millimetres.
    """

    smooth: float = Setting(default=2.0, ge=0.0, le=20.0)
    width: float = Setting(default=3.0, gt=0.0, le=20.0)
    least: float = Setting(default=18.0, ge=0.0, le=500.0)
    bridge: float = Setting(default=5.0, ge=0.0, le=50.0)
    close: float = Setting(default=5.0, ge=0.0, le=50.0)
    rim: float = Setting(default=60.0, ge=0.0, le=500.0)
    reach: float = Setting(default=110.0, gt=0.0)


class RegionGrowing(Segmenter):
    """Region growing from the seed source's points as clicks."""

    Settings: ClassVar[type[SystemSettings]] = RegionGrowingSettings
    settings: RegionGrowingSettings

    def segment(self, volume: Image, spec: ImageSpec) -> NDArray[np.bool_]:
        """Segment one volume from ``spec.marks``."""
        if volume.ndim != 3 or len(spec.spacing) != 3:
            raise BadOutput("needs a volume with three axes and the size of its voxels")
        if not spec.marks:
            raise BadOutput("needs points to grow from, and the data give none")
        return grow(volume, spec.spacing, spec.marks, **self.settings.own())


def grow(
    volume: NDArray[Any],
    spacing: Sequence[float],
    marks: Sequence[Sequence[float]],
    *,
    smooth: float = 2.0,
    width: float = 3.0,
    least: float = 18.0,
    bridge: float = 5.0,
    close: float = 5.0,
    rim: float = 60.0,
    reach: float = 110.0,
) -> Mask3:
    """Return the region that grows from points.

    Args:
        volume: D×H×W, any numbers.
        spacing: Millimetres per voxel.
        marks: Points in index coordinates.
        smooth: See :class:`RegionGrowingSettings`, as for the others.
        width: Standard deviations.
        least: Minimum tolerance.
        bridge: Millimetres.
        close: Millimetres.
        rim: Units of the volume.
        reach: Millimetres.

    Returns:
        bool of the volume's shape.
    """
    from scipy import ndimage

    places = [tuple(int(np.clip(round(c), 0, n - 1)) for c, n in zip(m, volume.shape, strict=True)) for m in marks]
    window = _within(volume.shape, spacing, places, reach)
    origin = [part.start for part in window]
    inner = [tuple(p - o for p, o in zip(place, origin, strict=True)) for place in places]
    level = _smoothed(volume[window], [smooth / s for s in spacing])
    alike, middle = _alike(level, spacing, inner, width, least)
    del level
    _limit(alike, spacing, inner, reach)
    core = _eroded(alike, spacing, bridge)
    labels, _ = ndimage.label(core)
    marked = {int(labels[place]) for place in inner} - {0}
    core = np.isin(labels, list(marked)) if marked else _at(alike.shape, inner)
    del labels
    region = ndimage.binary_dilation(core, _cross(), iterations=_steps(spacing, bridge) + 1, mask=alike)
    grown = np.zeros(volume.shape, np.bool_)
    grown[window] = with_rim(_closed(region, spacing, close), volume[window], middle, rim)
    return grown


def _within(
    shape: Sequence[int], spacing: Sequence[float], places: Sequence[Sequence[int]], reach: float
) -> tuple[slice, ...]:
    window = []
    for axis, length in enumerate(shape):
        steps = int(np.ceil(reach / spacing[axis]))
        line = [place[axis] for place in places]
        window.append(slice(max(0, min(line) - steps), min(length, max(line) + steps + 1)))
    return tuple(window)


def _smoothed(volume: NDArray[Any], sigma: Sequence[float]) -> NDArray[np.float32]:
    """Return a smoothed copy, computed in slabs to keep temporaries small."""
    from scipy import ndimage

    smooth = np.empty(volume.shape, np.float32)
    margin = int(np.ceil(4 * sigma[0]))
    for first in range(0, volume.shape[0], _SLAB):
        last = min(volume.shape[0], first + _SLAB)
        before, after = max(0, first - margin), min(volume.shape[0], last + margin)
        part = ndimage.gaussian_filter(np.asarray(volume[before:after], np.float32), sigma, mode="nearest")
        smooth[first:last] = part[first - before : last - before]
    return smooth


def _alike(
    level: NDArray[np.float32], spacing: Sequence[float], places: Sequence[Sequence[int]], width: float, least: float
) -> tuple[Mask3, float]:
    """Return a mask of voxels as bright as the surroundings of any point, and the median of the points' levels."""
    mask = np.zeros(level.shape, np.bool_)
    levels = []
    for place in places:
        box = tuple(
            slice(max(0, p - round(_SAMPLE_MM / s)), p + round(_SAMPLE_MM / s) + 1)
            for p, s in zip(place, spacing, strict=True)
        )
        middle = float(np.median(level[box]))
        reach = max(least, width * float(level[box].std()))
        for target, plane in zip(mask, level, strict=True):
            target |= np.abs(plane - np.float32(middle)) <= reach
        levels.append(middle)
    return mask, float(np.median(levels))


def _limit(mask: Mask3, spacing: Sequence[float], places: Sequence[Sequence[int]], reach: float) -> None:
    """Clear voxels farther than ``reach`` from every point, in place, slice by slice."""
    y, x = (np.arange(n, dtype=np.float32) * np.float32(s) for n, s in zip(mask.shape[1:], spacing[1:], strict=True))
    for index, plane in enumerate(mask):
        near = np.zeros(plane.shape, np.bool_)
        for place in places:
            rest = reach**2 - ((index - place[0]) * spacing[0]) ** 2
            squared = (y[:, None] - place[1] * spacing[1]) ** 2 + (x[None, :] - place[2] * spacing[2]) ** 2
            near |= squared <= rest
        plane &= near


def _cross() -> Mask3:
    from scipy import ndimage

    return ndimage.generate_binary_structure(3, 1)


def _steps(spacing: Sequence[float], radius: float) -> int:
    return max(0, round(radius / float(np.mean(spacing))))


def _eroded(mask: Mask3, spacing: Sequence[float], radius: float) -> Mask3:
    from scipy import ndimage

    steps = _steps(spacing, radius)
    return ndimage.binary_erosion(mask, _cross(), iterations=steps) if steps else mask.copy()


def _closed(mask: Mask3, spacing: Sequence[float], radius: float) -> Mask3:
    """Close gaps and fill holes, within the region's bounding box."""
    from scipy import ndimage

    steps = _steps(spacing, radius)
    box = bounding_box(mask)
    part = np.pad(mask[box], steps + 1)
    if steps:
        part = ndimage.binary_closing(part, _cross(), iterations=steps)
    part = ndimage.binary_fill_holes(part)
    closed = np.zeros_like(mask)
    inner = tuple(slice(steps + 1, n - steps - 1) for n in part.shape)
    closed[box] = part[inner]
    return closed


def _at(shape: Sequence[int], places: Sequence[Sequence[int]]) -> Mask3:
    mask = np.zeros(shape, np.bool_)
    for place in places:
        mask[tuple(place)] = True
    return mask
