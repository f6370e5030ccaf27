"""Dot test: measures where a relation takes the pixels of a picture, to compare with the effect that it declares.

A pattern of dots is drawn instead of the image, the relation changes it, and patches of it are searched in the result.
Patches that are covered, or changed beyond recognition, are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Image, Mask
from medtest.core.oracles.moves import moved_image, moved_mask

_Cell = tuple[int, int]
_Offset = tuple[float, float]

TOLERANCE = 1.0
"""Largest median distance in pixels between declared and measured places."""
_PATCHES = 80
"""Approximate number of patches."""
_SPACING = 16
"""Least distance of patches in pixels."""
_HALF = 14
"""Half the side of a patch in pixels, its centre apart."""
_REACH = 12
"""Largest distance in pixels at which a patch is searched."""
_ALIKE = 0.7
"""Smallest correlation coefficient of a patch that was found."""
_SMOOTHING = 1.5
"""Standard deviation in pixels of the smoothing before the search."""
_FEWEST = 6
"""Fewest patches of a picture that is large enough to tell."""
_SHARE = 0.4
"""Share of patches that must be found."""
_FLIPS = ((slice(None, None, -1), slice(None)), (slice(None), slice(None, None, -1)), (slice(None, None, -1),) * 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class DotShift:
    """Result of the dot test.

    Attributes:
        patches: Number of patches searched.
        matches: Number of patches found.
        distance: Median distance in pixels between their declared and their measured places; None if too few were found
            to tell.
        mirrored: True if the picture was mirrored.
    """

    patches: int
    matches: int
    distance: float | None
    mirrored: bool = False

    @property
    def differs(self) -> bool:
        """True if the pixels are not where the effect says."""
        return self.mirrored or (self.distance is not None and self.distance > TOLERANCE)


def dot_pattern(height: int, width: int) -> Image:
    """Return the pattern, uint8 H×W×3: light and dark dots of 3 to 8 pixels radius on grey, equal on every machine."""
    rng = np.random.Generator(np.random.PCG64(20261127))
    pattern = np.full((height, width), 128, np.uint8)
    for _ in range(height * width // 120):
        centre = (int(rng.integers(0, width)), int(rng.integers(0, height)))
        cv2.circle(pattern, centre, int(rng.integers(3, 9)), (48, 208)[int(rng.integers(0, 2))], cv2.FILLED)
    smooth = cv2.GaussianBlur(pattern, (0, 0), 1.0)
    return np.repeat(smooth[:, :, None], 3, axis=2)


def dot_shift(pattern: Image, changed: Image, effect: Effect, *, frame: Mask | None = None) -> DotShift:
    """Move a pattern as an effect declares, and search its patches in the changed picture.

    Args:
        pattern: uint8 H×W×3, from :func:`dot_pattern`.
        changed: uint8 H×W×3, what a relation made of it.
        effect: Effect that the relation declares.
        frame: bool H×W, True on the black frame, where nothing is searched.
    """
    shown = np.ones(pattern.shape[:2], np.bool_) if frame is None else ~frame
    if effect.moves:
        shown = shown & moved_mask(shown, effect)
    declared, after = (_smooth(image) for image in (moved_image(pattern, effect), changed))
    patches, offsets = _offsets(declared, after, shown)
    if patches < _FEWEST:
        return DotShift(patches=patches, matches=len(offsets), distance=None)
    if offsets and len(offsets) >= _SHARE * patches:
        return DotShift(patches=patches, matches=len(offsets), distance=_median_distance(offsets))
    flips = [] if effect.moves else [_smooth(pattern[flip]) for flip in _FLIPS]
    mirrored = any(_correlation(flipped[shown], after[shown]) > _ALIKE for flipped in flips)
    return DotShift(patches=patches, matches=len(offsets), distance=None, mirrored=mirrored)


def _smooth(image: Image) -> NDArray[np.uint8]:
    """Return the brightness of a picture without its finest noise."""
    grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.GaussianBlur(grey, (0, 0), _SMOOTHING), np.uint8)


def _offsets(before: NDArray[np.uint8], after: NDArray[np.uint8], shown: Mask) -> tuple[int, dict[_Cell, _Offset]]:
    """Return the number of patches, and the offset (right, down) of those that were found, by their place in a grid."""
    whole = cv2.erode(np.pad(shown, 1).astype(np.uint8), np.ones((2 * _HALF + 1,) * 2, np.uint8))[1:-1, 1:-1]
    patches, offsets = 0, {}
    spacing = max(_SPACING, math.isqrt(before.size // _PATCHES))
    for row, y in enumerate(range(_HALF, before.shape[0] - _HALF, spacing)):
        for column, x in enumerate(range(_HALF, before.shape[1] - _HALF, spacing)):
            if whole[y, x]:
                patches += 1
                offset = _offset(before, after, x, y)
                if offset is not None:
                    offsets[row, column] = offset
    return patches, offsets


def _offset(before: NDArray[np.uint8], after: NDArray[np.uint8], x: int, y: int) -> _Offset | None:
    """Return the offset of the patch about a point; None if it is not found."""
    patch = before[y - _HALF : y + _HALF + 1, x - _HALF : x + _HALF + 1]
    first_column, first_row = max(x - _HALF - _REACH, 0), max(y - _HALF - _REACH, 0)
    window = after[first_row : y + _HALF + _REACH + 1, first_column : x + _HALF + _REACH + 1]
    scores = np.asarray(cv2.matchTemplate(window, patch, cv2.TM_CCOEFF_NORMED), dtype=np.float32)
    _, best, _, (column, row) = cv2.minMaxLoc(scores)
    if best < _ALIKE:
        return None
    right = first_column + _HALF + column + _peak(scores[row], column) - x
    return right, first_row + _HALF + row + _peak(scores[:, column], row) - y


def _peak(scores: NDArray[np.float32], at: int) -> float:
    """Return the offset of a peak between its neighbours, by a parabola."""
    if not 0 < at < len(scores) - 1:
        return 0.0
    low, middle, high = (float(score) for score in scores[at - 1 : at + 2])
    bend = low - 2.0 * middle + high
    return 0.0 if bend >= 0.0 else 0.5 * (low - high) / bend


def _median_distance(offsets: dict[_Cell, _Offset]) -> float:
    """Return the median length of the offsets, each averaged over its neighbourhood to cancel noise."""
    lengths = []
    for row, column in offsets:
        near = [offsets[cell] for cell in _neighbours(row, column) if cell in offsets]
        right, down = (float(np.median(axis)) for axis in zip(*near, strict=True))
        lengths.append(math.hypot(right, down))
    return float(np.median(lengths))


def _neighbours(row: int, column: int) -> Iterator[_Cell]:
    return ((row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1))


def _correlation(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    values = np.stack([first, second]).astype(np.float64)
    return 0.0 if not values.size or (values.std(axis=1) < 1.0).any() else float(np.asarray(np.corrcoef(values))[0, 1])
