"""Levels of a grey picture: which count as classes, and which are noise on black and white."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask
from medtest.core.files.images import BadFileError

BLACK, WHITE = 16, 239
"""Levels up to the one and from the other on are black and white with noise of JPEG."""

_NEAR = 32
"""Levels so near to 0 or 255 may be noise on black or white."""

_IDS = 8
"""Levels up to this are numbers of classes, however few pixels have them."""

_BLACK_AND_WHITE = 0.95
"""Least part of the pixels that 0 and white hold where levels near them may be noise."""

_REACH = 1 / 96
"""Noise lies within 3 pixels of white, of the border or of another level where a picture has 288 rows; as much of the
smaller side in larger pictures, which copies of another size are."""

EVERY = np.arange(256)
_BETWEEN = ((EVERY > 0) & (EVERY <= _NEAR)) | ((EVERY >= 255 - _NEAR) & (EVERY < WHITE))
"""By level: near black or white, and neither."""

_NEAR_LEVELS = _BETWEEN & (EVERY > _IDS)
"""By level: may be noise on black or white."""

FEW = 24
"""So many levels or fewer are drawn, not measured: labels, with or without soft edges."""

SHARE_FEW, _SHARE_MANY = 0.005, 0.05
"""Least part of what is not black that a level takes to count, in pictures of few levels and of many."""

_COHERENT = 0.25
MOST_SHOWN = 6
CURE = "label_values=[…] says which are lesion"


def _is_one_class(found: dict[int, int]) -> bool:
    """Say whether of levels that count none or one is lit."""
    lit = [level for level in found if level > 0]
    return not lit or (len(lit) == 1 and lit[0] > 127)


def noise_beside(light: NDArray[np.uint8], counts: NDArray[np.intp], *, lossless: bool) -> float:
    """Return which part of a black and white picture is taken for noise and may look like a class.

    Args:
        light: The picture.
        counts: How often each level occurs.
        lossless: Whether its format keeps values.

    Raises:
        BadFileError: It is more than noise: a level is a class.
    """
    few = lossless and is_drawn(counts)
    found = plateaus(light, counts, few=few)
    fits = _is_one_class(found)
    if fits and not few:
        return 0.0
    near = int(counts[_IDS + 1 : _NEAR + 1].sum() + counts[255 - _NEAR : WHITE].sum())
    if near and counts[0] + counts[WHITE:].sum() < _BLACK_AND_WHITE * light.size:
        near = 0
    if fits:
        return near / light.size
    if near:
        side = 2 * max(3, math.ceil(_REACH * min(light.shape))) + 1
        reach = np.ones((side, side), np.uint8)
        noise = _NEAR_LEVELS[light] & (_reached_from(light >= WHITE, reach) | _among_others(light, reach))
        plain = np.where(noise, np.where(light > 127, np.uint8(255), np.uint8(0)), light)
        if _is_one_class(plateaus(plain, level_counts(plain), few=few)):
            return near / light.size
    raise BadFileError(f"holds several levels ({in_words(found)}); {CURE}")


def _reached_from(white: Mask, reach: NDArray[np.uint8]) -> Mask:
    """Return the pixels within reach of white or of the picture's border, bool H×W."""
    framed = cv2.copyMakeBorder(white.astype(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=1)
    return np.asarray(cv2.dilate(framed, reach)[1:-1, 1:-1] > 0)


def _among_others(light: NDArray[np.uint8], reach: NDArray[np.uint8]) -> Mask:
    """Return the pixels within reach of two different levels that are near black or white and neither, bool H×W."""
    between = _BETWEEN[light]
    highest = cv2.dilate(np.where(between, light, np.uint8(0)), reach)
    lowest = cv2.erode(np.where(between, light, np.uint8(255)), reach)
    return np.asarray(highest > lowest)


def level_counts(light: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return how often each level occurs, 256 numbers."""
    return np.bincount(light.ravel(), minlength=256)


def is_drawn(counts: NDArray[np.intp]) -> bool:
    """Say whether a picture has so few levels that they are drawn, not measured."""
    return int(np.count_nonzero(counts)) <= FEW


def plateaus(light: NDArray[np.uint8], counts: NDArray[np.intp], *, few: bool) -> dict[int, int]:
    """Return levels that count, each with its pixels; black as 0 and white as 255 take the noise around them.

    Args:
        light: The picture.
        counts: How often each level occurs.
        few: Whether its levels are drawn; see :func:`is_drawn`.
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
    """Say whether a quarter of a part's pixels begin a 2×2 square of it.

    Args:
        part: The part.
        area: How many pixels it has.
    """
    if area < 4:  # no square
        return False
    squares = part[:-1, :-1] & part[1:, :-1] & part[:-1, 1:] & part[1:, 1:]  # all inside: beyond the border is nothing
    return int(np.count_nonzero(squares)) >= _COHERENT * area > 0


def in_words(levels: dict[int, int]) -> str:
    """Return levels with their share of the pixels, for a message."""
    total = max(1, sum(levels.values()))
    shown = [f"{level}: {100 * count / total:.2g} %" for level, count in sorted(levels.items())]
    return ", ".join(shown[:MOST_SHOWN]) + (f" and {len(shown) - MOST_SHOWN} more" * (len(shown) > MOST_SHOWN))
