"""Rotated and scaled cut-outs for pasting: premultiplied, with blurred edges, cached per process within bounds.

Angles and sizes come in steps, so that parameters are small integers and results can be reused. The position of a
cut-out is computed without drawing it (:class:`Pose`), so that searching for a place is cheap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask
from medtest.core.portable import fused, product
from medtest.relations.objects.library import SOLID, BoundedCache, ObjectInfo, ObjectLibrary, Rgba

SIZES_PER_OCTAVE = 8
"""Size steps per doubling of an object's side: neighbouring areas differ by 19 %."""
FAINT = 26
"""Alpha (0–255) from which a pixel counts as touching the lesion; below are the tails of shadows and blur."""
_CUTOUT_BYTES = 64 * 2**20
_SOURCE_BYTES = 96 * 2**20
_COARSE_BYTES = 16 * 2**20
_FINER = 2
"""Factor by which a coarse shape is first drawn finer than its cells."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """An object in the pose used by a case.

    Attributes:
        info: The object.
        angle: Whole degrees clockwise.
        step: Size step (:func:`size_factor`).
        flip: Mirrored left to right before turning.
    """

    info: ObjectInfo
    angle: int
    step: int
    flip: bool = False

    @property
    def key(self) -> tuple[str, str, int, int, bool]:
        """Key that identifies a variant within its library."""
        return self.info.kind, self.info.name, self.angle % 360, self.step, self.flip

    @property
    def pixels(self) -> float:
        """Approximate number of pixels of the object."""
        return self.info.pixels * size_factor(self.step) ** 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Pose:
    """Mapping of a variant's points to prepared pixels.

    Attributes:
        linear: 2×2 matrix from source pixels to prepared pixels.
        low: Lowest x and y of the rotated box; positions are relative to it.
        size: Width and height of the rotated box in pixels, including padding for the blur.
        source: Width and height of the source picture in pixels.
    """

    linear: NDArray[np.float64]
    low: NDArray[np.float64]
    size: tuple[int, int]
    source: tuple[int, int]

    def place(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return N×2 points, given as fractions of the source picture, in pixels of the rotated box."""
        return product(points * self.source, self.linear.T) - self.low


@dataclass(frozen=True, kw_only=True, eq=False)
class Cutout:
    """Variant ready for pasting.

    Attributes:
        colour: uint8 h×w×3 RGB, premultiplied by alpha.
        alpha: uint8 h×w×3, alpha in three equal channels.
        offset: x and y of its top-left pixel within the rotated box of its pose.
    """

    colour: NDArray[np.uint8]
    alpha: NDArray[np.uint8]
    offset: tuple[int, int]

    @cached_property
    def visible(self) -> Mask:
        """Boolean h×w, True where pasting visibly changes the picture."""
        return np.asarray(self.alpha[..., 0] >= FAINT, np.bool_)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Source:
    """Premultiplied picture, its halvings, and the hull of visible pixels as fractions of its sides."""

    levels: list[Rgba]
    solid: list[NDArray[np.uint8]]
    visible: list[NDArray[np.uint8]]
    hull: NDArray[np.float64]


Coarse = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Variant in coarse cells, float32: the share of each that the object covers, and 1 where it visibly changes."""

_CUTOUTS: BoundedCache[Cutout] = BoundedCache(_CUTOUT_BYTES, lambda cutout: cutout.colour.nbytes + cutout.alpha.nbytes)
_SOURCES: BoundedCache[_Source] = BoundedCache(
    _SOURCE_BYTES, lambda source: sum(3 * p.nbytes // 2 for p in source.levels)
)
_COARSE: BoundedCache[Coarse] = BoundedCache(_COARSE_BYTES, lambda coarse: coarse[0].nbytes + coarse[1].nbytes)


def size_factor(step: int) -> float:
    """Return the factor on an object's side for a size step; 0 is the original size."""
    return float(2.0 ** (step / SIZES_PER_OCTAVE))


def size_step(info: ObjectInfo, pixels: float) -> int:
    """Return the size step at which the object has about this many pixels."""
    return round(SIZES_PER_OCTAVE * 0.5 * math.log2(max(pixels, 1.0) / info.pixels))


def pose(library: ObjectLibrary, variant: Variant, blur: float) -> Pose:
    """Return the variant's pose; ``blur`` (pixels) widens its box."""
    first = _source(library, variant.info).levels[0]
    height, width = first.shape[:2]
    factor, turn = size_factor(variant.step), math.radians(variant.angle)
    cosine, sine = factor * math.cos(turn), factor * math.sin(turn)
    mirror = -1.0 if variant.flip else 1.0
    pad = math.ceil(3 * blur) + 1
    # The corners of the rotated box are sums of the two rotated sides.
    across, down = (cosine * mirror * width, sine * mirror * width), (-sine * height, cosine * height)
    low = [math.floor(min(a, 0.0) + min(d, 0.0)) - pad for a, d in zip(across, down, strict=True)]
    high = [math.ceil(max(a, 0.0) + max(d, 0.0)) + pad for a, d in zip(across, down, strict=True)]
    return Pose(
        linear=np.array([[cosine * mirror, -sine], [sine * mirror, cosine]]),
        low=np.array(low, np.float64),
        size=(high[0] - low[0], high[1] - low[1]),
        source=(width, height),
    )


def visible_box(library: ObjectLibrary, variant: Variant, where: Pose) -> tuple[int, int, int, int]:
    """Return the box (left, top, width, height) of visible pixels within the rotated box, without drawing."""
    points = where.place(_source(library, variant.info).hull)
    low, high = np.floor(points.min(axis=0)) - 1, np.ceil(points.max(axis=0)) + 1
    left, top = max(int(low[0]), 0), max(int(low[1]), 0)
    return left, top, min(int(high[0]), where.size[0]) - left, min(int(high[1]), where.size[1]) - top


def cutout(library: ObjectLibrary, variant: Variant, blur: float) -> Cutout:
    """Return the variant ready for pasting, with edges softened by a Gaussian of standard deviation ``blur`` pixels.

    Raises:
        UserMistakes: The library's file has changed since indexing.
    """
    return _CUTOUTS.get((library.digest, *variant.key, blur), lambda: _draw(library, variant, blur))


def coarse(library: ObjectLibrary, variant: Variant, blur: float, cell: int) -> Coarse:
    """Return the variant in cells of ``cell`` pixels, the first cell at the rotated box's top-left pixel."""
    return _COARSE.get((library.digest, *variant.key, blur, cell), lambda: _draw_coarse(library, variant, blur, cell))


def _source(library: ObjectLibrary, info: ObjectInfo) -> _Source:
    return _SOURCES.get((library.digest, info.kind, info.name), lambda: _premultiply(library, info))


def _halvings(first: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    levels = [first]
    while len(levels) < 6 and min(levels[-1].shape[:2]) >= 8:
        height, width = levels[-1].shape[:2]
        half = cv2.resize(levels[-1], ((width + 1) // 2, (height + 1) // 2), interpolation=cv2.INTER_AREA)
        levels.append(np.asarray(half, np.uint8))
    return levels


def _premultiply(library: ObjectLibrary, info: ObjectInfo) -> _Source:
    picture = library.picture(info.kind, info.name)
    alpha = picture[..., 3:].astype(np.uint16)
    first = picture.copy()
    first[..., :3] = (picture[..., :3] * alpha + 127) // 255
    height, width = picture.shape[:2]
    faint = (picture[..., 3] >= FAINT).astype(np.uint8)
    # The hull of all visible pixels equals that of their outlines, which have far fewer points.
    places = np.concatenate(cv2.findContours(faint, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)[0])
    hull = cv2.convexHull(places).reshape(-1, 2).astype(np.float64) + 0.5
    return _Source(
        levels=_halvings(first),
        solid=_halvings((picture[..., 3] >= SOLID).astype(np.uint8) * np.uint8(255)),
        visible=_halvings(faint * np.uint8(255)),
        hull=hull / (width, height),
    )


def _warp(levels: list[NDArray[np.uint8]], where: Pose, factor: float, shrink: float = 1.0) -> NDArray[np.uint8]:
    """Return the picture in its pose, with the rotated box ``shrink`` times smaller."""
    # Bilinear sampling needs a scale between half and full size, so smaller ones start from a halved picture.
    level = min(max(math.floor(-math.log2(factor / shrink)), 0), len(levels) - 1)
    picture = levels[level]
    stretch = np.array([where.source[0] / picture.shape[1], where.source[1] / picture.shape[0]])
    matrix = np.empty((2, 3))
    matrix[:, :2] = where.linear * stretch / shrink
    half = 0.5 * stretch
    middle = fused(where.linear[:, 0], half[0], where.linear[:, 1] * half[1])
    # Pixel centres are at half-integers: shift to corners, transform, shift back.
    matrix[:, 2] = (middle - where.low) / shrink - 0.5
    size = (math.ceil(where.size[0] / shrink), math.ceil(where.size[1] / shrink))
    return np.asarray(cv2.warpAffine(picture, matrix, size, flags=cv2.INTER_LINEAR), np.uint8)


def _draw(library: ObjectLibrary, variant: Variant, blur: float) -> Cutout:
    where = pose(library, variant, blur)
    warped = _warp(_source(library, variant.info).levels, where, size_factor(variant.step))
    if blur > 0:
        side = 2 * max(round(1.5 * blur), 1) + 1
        blurred = cv2.GaussianBlur(warped, (side, side), blur, borderType=cv2.BORDER_CONSTANT)
        warped = np.asarray(blurred, np.uint8)
    x, y, width, height = cv2.boundingRect(cv2.extractChannel(warped, 3))
    warped = np.ascontiguousarray(warped[y : y + max(height, 1), x : x + max(width, 1)])
    alpha = np.asarray(cv2.cvtColor(cv2.extractChannel(warped, 3), cv2.COLOR_GRAY2RGB), np.uint8)
    colour = np.asarray(cv2.cvtColor(warped, cv2.COLOR_RGBA2RGB), np.uint8)
    for array in (alpha, colour):
        array.flags.writeable = False
    return Cutout(colour=colour, alpha=alpha, offset=(int(x), int(y)))


def _draw_coarse(library: ObjectLibrary, variant: Variant, blur: float, cell: int) -> Coarse:
    where, source = pose(library, variant, blur), _source(library, variant.info)
    columns, rows = -(-where.size[0] // cell), -(-where.size[1] // cell)
    factor, shrink = size_factor(variant.step), cell / _FINER

    def cells(levels: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
        whole = np.zeros((rows * _FINER, columns * _FINER), np.float32)
        fine = _warp(levels, where, factor, shrink)
        whole[: fine.shape[0], : fine.shape[1]] = fine[: whole.shape[0], : whole.shape[1]]
        return np.asarray(cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA), np.float32)

    return cells(source.solid) / np.float32(255), (cells(source.visible) > 2).astype(np.float32)
