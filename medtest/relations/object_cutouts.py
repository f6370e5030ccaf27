"""Cut-outs turned and scaled for pasting: premultiplied, edges blurred, kept per process within bounds.

Angles and sizes come in steps, so that parameters are small integers and what was made once is used again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.cases import Mask
from medtest.relations.object_library import SOLID, BoundedCache, ObjectInfo, ObjectLibrary, Rgba

SIZES_PER_OCTAVE = 16
"""Size steps per doubling of an object's side: neighbouring areas differ by 9 %."""
FAINT = 26
"""Alpha (0–255) from which a pixel counts for keeping off the lesion; below it lie the tails of shadows and blur."""
_KEPT_BYTES = 64 * 2**20
_KEPT_LEVELS = 64 * 2**20


@dataclass(frozen=True, kw_only=True, eq=False)
class Cutout:
    """An object ready to be pasted.

    Attributes:
        colour: uint8 h×w×3 RGB, premultiplied by ``alpha``.
        alpha: uint8 h×w.
        cut: N×2 float64 points (x, y) in pixels that lay on the original field's border; N may be 0.
        centre: Middle (x, y) in pixels of the original cut-out's box, which the original position refers to.
        tip: (x, y) in pixels of the end that stays in view.
        area: Pixels with alpha ≥ ``SOLID``.
    """

    colour: NDArray[np.uint8]
    alpha: NDArray[np.uint8]
    cut: NDArray[np.float64]
    centre: tuple[float, float]
    tip: tuple[float, float]
    area: int

    @cached_property
    def alpha3(self) -> NDArray[np.uint8]:
        """Alpha in three channels."""
        return np.asarray(cv2.merge([self.alpha, self.alpha, self.alpha]), np.uint8)

    @cached_property
    def solid(self) -> Mask:
        """bool h×w, True where the object is."""
        return self.alpha >= SOLID

    @cached_property
    def visible(self) -> Mask:
        """bool h×w, True where pasting changes the picture noticeably."""
        return self.alpha >= FAINT

    @property
    def nbytes(self) -> int:
        """Bytes that keeping it costs, the lazily made arrays among them."""
        return 9 * int(self.alpha.size)


_CUTOUTS: BoundedCache[Cutout] = BoundedCache(_KEPT_BYTES, lambda cutout: cutout.nbytes)
_LEVELS: BoundedCache[list[Rgba]] = BoundedCache(_KEPT_LEVELS, lambda levels: sum(level.nbytes for level in levels))


def size_factor(step: int) -> float:
    """Return the factor on an object's side for a size step; 0 is its own size."""
    return float(2.0 ** (step / SIZES_PER_OCTAVE))


def size_step(info: ObjectInfo, pixels: float) -> int:
    """Return the size step at which the object has about that many pixels."""
    return round(SIZES_PER_OCTAVE * 0.5 * math.log2(max(pixels, 1.0) / info.pixels))


def cutout(
    library: ObjectLibrary, info: ObjectInfo, *, angle: int, step: int, flip: bool, blur: float
) -> Cutout:
    """Return an object turned by whole degrees (clockwise), scaled by a size step, mirrored first when ``flip``.

    Args:
        library: Where its picture lies.
        info: The object.
        angle: Degrees clockwise.
        step: As :func:`size_factor` takes it.
        flip: Mirror it left to right before turning.
        blur: Standard deviation in pixels of the Gaussian blur that softens its edge; 0 for none.

    Raises:
        UserMistakes: The library's file is not what its index said.
    """
    key = (library.digest, info.kind, info.name, angle % 360, step, flip, blur)
    return _CUTOUTS.get(key, lambda: _make(library, info, angle % 360, step, flip, blur))


def _levels(library: ObjectLibrary, info: ObjectInfo) -> list[Rgba]:
    """Return the premultiplied picture and its halvings, down to a sixteenth."""
    picture = library.picture(info.kind, info.name)
    alpha = picture[..., 3:].astype(np.uint16)
    first = picture.copy()
    first[..., :3] = (picture[..., :3] * alpha + 127) // 255
    levels = [first]
    while len(levels) < 5 and min(levels[-1].shape[:2]) >= 8:
        height, width = levels[-1].shape[:2]
        levels.append(
            np.asarray(cv2.resize(levels[-1], ((width + 1) // 2, (height + 1) // 2), interpolation=cv2.INTER_AREA))
        )
    return levels


def _make(library: ObjectLibrary, info: ObjectInfo, angle: int, step: int, flip: bool, blur: float) -> Cutout:
    levels = _LEVELS.get((library.digest, info.kind, info.name), lambda: _levels(library, info))
    height, width = levels[0].shape[:2]
    factor = size_factor(step)
    # Bilinear sampling is sound between half and full size, so smaller ones start from a halved picture.
    level = min(max(int(math.floor(-math.log2(factor))), 0), len(levels) - 1)
    turn = math.radians(angle)
    cosine, sine = factor * math.cos(turn), factor * math.sin(turn)
    mirror = -1.0 if flip else 1.0
    linear = np.array([[cosine * mirror, -sine], [sine * mirror, cosine]])
    corners = np.array([[0, 0], [width, 0], [0, height], [width, height]], np.float64) @ linear.T
    pad = math.ceil(3 * blur) + 1
    low = np.floor(corners.min(axis=0)) - pad
    size = (np.ceil(corners.max(axis=0)) + pad - low).astype(int)
    source = levels[level]
    stretch = np.array([width / source.shape[1], height / source.shape[0]])
    # Pixel centres lie at half-integers: shift to corners, transform, shift back.
    matrix = np.empty((2, 3))
    matrix[:, :2] = linear * stretch
    matrix[:, 2] = linear @ (0.5 * stretch) - low - 0.5
    warped = cv2.warpAffine(source, matrix, (int(size[0]), int(size[1])), flags=cv2.INTER_LINEAR)
    if blur > 0:
        warped = cv2.GaussianBlur(warped, (0, 0), blur, borderType=cv2.BORDER_CONSTANT)
    x, y, w, h = cv2.boundingRect(np.ascontiguousarray(warped[..., 3]))
    warped = warped[y : y + max(h, 1), x : x + max(w, 1)]
    corner = low + (x, y)

    def place(point: list[float]) -> NDArray[np.float64]:
        return np.asarray(linear @ (np.array(point) * (width, height)) - corner, np.float64)

    alpha = np.ascontiguousarray(warped[..., 3])
    colour = np.ascontiguousarray(warped[..., :3])
    # A premultiplied colour above its alpha would brighten what it covers; blur's rounding can leave one.
    np.minimum(colour, alpha[..., None], out=colour)
    for array in (alpha, colour):
        array.flags.writeable = False
    centre, tip = place([0.5, 0.5]), place(info.tip)
    return Cutout(
        colour=colour,
        alpha=alpha,
        cut=np.array([place(point) for point in info.cut]).reshape(-1, 2),
        centre=(float(centre[0]), float(centre[1])),
        tip=(float(tip[0]), float(tip[1])),
        area=int(np.count_nonzero(alpha >= SOLID)),
    )
