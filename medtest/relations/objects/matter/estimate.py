"""Estimate of a swatch from a cut-out: colour without the light that fell on it, height, opacity and wetness."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.relations.objects.matter.swatches import SIDES
from medtest.relations.objects.scene import LONGER_SIDE, USUAL_LUMA, WHITE_FROM, tint_of

LEAST_SQUARE = 12
"""Pixels of a swatch that an object must fill; smaller objects are enlarged to this."""
STEEPNESS = 6.0
"""Height in pixels of a place twice as bright as its surroundings."""
DULL, WET = 0.35, 20.0
"""Wetness without reflections, and its growth with their share of the area."""
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def estimate_swatch(image: Image, part: Mask, tissue: Mask) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the albedo picture and the surface picture (height, opacity, wetness) of an object's matter.

    Its largest inner square is lit evenly and mirrored to at least 64 pixels a side.

    Args:
        image: H×W×3 uint8 RGB.
        part: bool H×W, the object; at least one pixel.
        tissue: bool H×W, mucosa of the field, by which colours become those on usual mucosa.

    Returns:
        Two uint8 S×S×3 RGB pictures of one side, a pixel a 256th of the image's longer side.
    """
    square, white = _inner_square(image, part)
    luma = square @ _LUMA
    sigma = max(len(square) / 4, 1.0)
    # Light changes slowly; what changes faster than it, and slower than grain, is taken as relief.
    light, relief = (
        cv2.GaussianBlur(luma, (0, 0), spread, borderType=cv2.BORDER_REFLECT) for spread in (sigma, sigma / 4)
    )
    colours = image[tissue].astype(np.float32) if tissue.any() else np.full((1, 3), USUAL_LUMA, np.float32)
    tint = tint_of([float(value) for value in colours.mean(axis=0)], float(np.median(colours @ _LUMA)))
    mean = max(float(luma.mean()), 1.0)
    albedo = square * (mean / np.maximum(relief, 1.0))[..., None] / np.array(tint, np.float32)
    height = 128 + 16 * STEEPNESS * (np.asarray(relief) / np.maximum(light, 1.0) - 1)
    surface = np.empty_like(square)
    surface[..., 0], surface[..., 1], surface[..., 2] = height, 255, 255 * min(DULL + WET * white, 1.0)
    return _mirrored(albedo), _mirrored(surface)


def _inner_square(image: Image, part: Mask) -> tuple[NDArray[np.float32], float]:
    """Return the largest square inside an object, in swatch pixels, and the share of reflections on the object."""
    inside = cv2.distanceTransform(np.pad(part, 1).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)[1:-1, 1:-1]
    row, column = (int(value) for value in np.unravel_index(int(np.argmax(inside)), inside.shape))
    half = max(int(float(inside[row, column]) / math.sqrt(2.0)), 1)
    square = image[max(row - half, 0) : row + half + 1, max(column - half, 0) : column + half + 1]
    length = min(square.shape[:2])
    side = min(max(round(length * LONGER_SIDE / max(image.shape[:2])), LEAST_SQUARE), SIDES[1] // 2)
    white = (image.min(axis=2) >= WHITE_FROM) & part
    method = cv2.INTER_AREA if side < length else cv2.INTER_LINEAR
    scaled = cv2.resize(square[:length, :length], (side, side), interpolation=method)
    # Reflections are the lamp's, not the matter's: they take the colour of what lies around them.
    bright = cv2.dilate((scaled.min(axis=2) >= WHITE_FROM).astype(np.uint8), np.ones((3, 3), np.uint8))
    if bright.any() and not bright.all():
        scaled = cv2.inpaint(scaled, bright, 2, cv2.INPAINT_TELEA)
    return np.asarray(scaled, np.float32), np.count_nonzero(white) / np.count_nonzero(part)


def _mirrored(values: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Return a picture as uint8, mirrored beyond its sides to at least the least side of a swatch."""
    picture = np.clip(np.round(values), 0, 255).astype(np.uint8)
    missing = max(SIDES[0] - len(picture), 0)
    return np.asarray(np.pad(picture, ((0, missing), (0, missing), (0, 0)), mode="symmetric"), np.uint8)
