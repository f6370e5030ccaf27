"""Colour and fine contrast of the tissue around each place of the work grid."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask

LIMITS = (0.12, 1.7)
"""Least and largest light, as share of the field's."""
LOCAL, AREA = (9, 9), (11, 11)
"""Work cells over which colour and fine contrast are averaged twice."""
GRAIN = (5, 5)
"""Work cells from whose mean fine contrast is measured."""
USUAL_TEXTURE = 0.034
"""Fine contrast at which matter keeps its own: mean difference from the mean of 5 × 5 cells, as share of brightness."""
TEXTURES = (0.6, 1.7)
"""Least and largest fine contrast, as multiple of the usual one."""

Floats = NDArray[np.float32]


def tissue_around(
    small: NDArray[np.uint8], even: NDArray[np.uint8], plain: Mask, light: Floats
) -> tuple[Floats, Floats, tuple[float, float, float]]:
    """Return colour and fine contrast of the tissue around each place, and the field's mean colour.

    Args:
        small: The picture on the work grid, uint8 H×W×3.
        even: Its brightness without reflections, uint8 H×W.
        plain: bool H×W, the field without reflections; at least one cell.
        light: float32 H×W, light where no tissue is near.

    Returns:
        float32 3×H×W, share of the mean colour; float32 H×W, multiple of :data:`USUAL_TEXTURE`; R, G and B.
    """
    inside = plain.view(np.uint8) * np.uint8(255)
    seen = cv2.bitwise_and(small, small, mask=inside)
    pixels = int(np.count_nonzero(plain))
    red, green, blue = (max(float(value) / pixels, 4.0) for value in cv2.sumElems(seen)[:3])
    near, share = (cv2.blur(cv2.blur(part, LOCAL), LOCAL) for part in (seen, inside))
    scale = np.where(share > 48, np.float32(255) / np.maximum(share, 1).astype(np.float32), np.float32(0))
    local = np.empty((3, *plain.shape), np.float32)
    for channel, value in enumerate((red, green, blue)):
        local[channel] = np.where(scale > 0, near[..., channel] * scale * np.float32(1 / value), light)
    np.clip(local, np.float32(LIMITS[0]), np.float32(LIMITS[1]), out=local)
    inner = cv2.erode(inside, np.ones((3, 3), np.uint8))
    steps = cv2.bitwise_and(cv2.convertScaleAbs(cv2.absdiff(even, cv2.blur(even, GRAIN)), alpha=16), inner)
    rough, share = (cv2.blur(cv2.blur(part, AREA), AREA).astype(np.float32) for part in (steps, inner))
    luma = cv2.blur(cv2.blur(even, LOCAL), LOCAL).astype(np.float32)
    rough *= np.float32(255 / 16 / USUAL_TEXTURE)
    texture = rough / (np.maximum(share, np.float32(32)) * np.maximum(luma, np.float32(8)))
    np.clip(texture, np.float32(TEXTURES[0]), np.float32(TEXTURES[1]), out=texture)
    return local, texture, (red, green, blue)
