"""Grey levels of a mask picture: separating classes from noise on black and white."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask
from medtest.core.files.images import BadFileError

BLACK, WHITE = 16, 239
"""Levels up to the first and from the second on are black and white with JPEG noise."""

_NEAR = 32
"""Levels this close to 0 or 255 may be noise on black or white."""

_IDS = 8
"""Levels up to this are class numbers, however few pixels have them."""

_BLACK_AND_WHITE = 0.95
"""Least share of pixels at 0 and white for levels close to them to count as noise."""

_REACH = 1 / 96
"""Maximum distance of noise from white, the border or another level.

3 pixels for a picture of 288 rows, and the same share of the smaller side in larger pictures, which resized copies
need.
"""

EVERY = np.arange(256)
_BETWEEN = ((EVERY > 0) & (EVERY <= _NEAR)) | ((EVERY >= 255 - _NEAR) & (EVERY < WHITE))
"""For each level: True if it is close to, but not exactly, black or white."""

_NEAR_LEVELS = _BETWEEN & (EVERY > _IDS)
"""For each level: True if it may be noise on black or white."""

FEW = 24
"""Pictures of at most so many levels are drawn, not measured: labels, with or without soft edges."""

SHARE_FEW, _SHARE_MANY = 0.005, 0.05
"""Least share of the non-black pixels for a level to count, in pictures of few levels and of many."""

_COHERENT = 0.25
MOST_SHOWN = 6
CURE = "label_values=[…] says which are lesion"


def _is_one_class(levels: dict[int, int]) -> bool:
    """Return True if at most one of the levels that count is lit."""
    lit = [level for level in levels if level > 0]
    return not lit or (len(lit) == 1 and lit[0] > 127)


def noise_beside(light: NDArray[np.uint8], counts: NDArray[np.intp], *, lossless: bool) -> float:
    """Return the share of a black-and-white picture that is treated as noise but may look like a class.

    Args:
        light: The picture.
        counts: Number of pixels of each level.
        lossless: True if its format preserves values.

    Raises:
        BadFileError: A level is a class and not noise.
    """
    few = lossless and is_drawn(counts)
    levels = plateaus(light, counts, few=few)
    fits = _is_one_class(levels)
    if fits and not few:
        return 0.0
    near_count = int(counts[_IDS + 1 : _NEAR + 1].sum() + counts[255 - _NEAR : WHITE].sum())
    if near_count and counts[0] + counts[WHITE:].sum() < _BLACK_AND_WHITE * light.size:
        near_count = 0
    if fits:
        return near_count / light.size
    if near_count:
        side = 2 * max(3, math.ceil(_REACH * min(light.shape))) + 1
        reach = np.ones((side, side), np.uint8)
        noise = _NEAR_LEVELS[light] & (_near_white(light >= WHITE, reach) | _near_two_levels(light, reach))
        plain = np.where(noise, np.where(light > 127, np.uint8(255), np.uint8(0)), light)
        if _is_one_class(plateaus(plain, level_counts(plain), few=few)):
            return near_count / light.size
    raise BadFileError(f"holds several levels ({in_words(levels)}); {CURE}")


def _near_white(white: Mask, reach: NDArray[np.uint8]) -> Mask:
    """Return the pixels within reach of white or of the picture's border, bool H×W."""
    bordered = cv2.copyMakeBorder(white.astype(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=1)
    return np.asarray(cv2.dilate(bordered, reach)[1:-1, 1:-1] > 0)


def _near_two_levels(light: NDArray[np.uint8], reach: NDArray[np.uint8]) -> Mask:
    """Return the pixels within reach of two different levels that are close to black or white, bool H×W."""
    between = _BETWEEN[light]
    highest = cv2.dilate(np.where(between, light, np.uint8(0)), reach)
    lowest = cv2.erode(np.where(between, light, np.uint8(255)), reach)
    return np.asarray(highest > lowest)


def level_counts(light: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return the number of pixels of each level, 256 numbers."""
    return np.bincount(light.ravel(), minlength=256)


def is_drawn(counts: NDArray[np.intp]) -> bool:
    """Return True if a picture has so few levels that they are drawn, not measured."""
    return int(np.count_nonzero(counts)) <= FEW


def plateaus(light: NDArray[np.uint8], counts: NDArray[np.intp], *, few: bool) -> dict[int, int]:
    """Return the levels that count with their pixel counts; black (0) and white (255) include the noise around them.

    Args:
        light: The picture.
        counts: Number of pixels of each level.
        few: True if its levels are drawn; see :func:`is_drawn`.
    """
    low = 0 if few else BLACK
    least = (SHARE_FEW if few else _SHARE_MANY) * max(1, int(counts[low + 1 :].sum()))
    middle = {
        level: int(counts[level])
        for level in range(low + 1, WHITE)
        if counts[level] >= least and holds_together(light == level, int(counts[level]))
    }
    white = light >= WHITE
    area = int(counts[WHITE:].sum())
    lit = {255: area} if area >= least and holds_together(white, area) else {}
    return {0: int(counts[: low + 1].sum()), **middle, **lit}


def holds_together(part: Mask, area: int) -> bool:
    """Return True if a quarter of a region's pixels are the corner of a 2×2 square inside it.

    Args:
        part: The region.
        area: Its number of pixels.
    """
    if area < 4:  # too small for a square
        return False
    squares = part[:-1, :-1] & part[1:, :-1] & part[:-1, 1:] & part[1:, 1:]  # pixels beyond the border count as outside
    return int(np.count_nonzero(squares)) >= _COHERENT * area > 0


def in_words(levels: dict[int, int]) -> str:
    """Format levels with their share of the pixels for a message."""
    total = max(1, sum(levels.values()))
    shares = [f"{level}: {100 * count / total:.2g} %" for level, count in sorted(levels.items())]
    return ", ".join(shares[:MOST_SHOWN]) + (f" and {len(shares) - MOST_SHOWN} more" * (len(shares) > MOST_SHOWN))
