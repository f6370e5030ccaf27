"""Estimate of a swatch from a cut-out: colour without the light that fell on it, height, opacity and wetness."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.relations.objects.matter.around import GRAIN, USUAL_TEXTURE
from medtest.relations.objects.matter.swatches import SIDES
from medtest.relations.objects.scene import LONGER_SIDE, USUAL_LUMA, WHITE_FROM, tint_of

LEAST_SQUARE = 12
"""Pixels of a swatch that an object must fill; smaller objects are enlarged to this."""
STEEPNESS = 1.0
"""Height in pixels of a place twice as bright as its surroundings."""
SHARPER = 0.4
"""Factor on the finest detail, which interpolation to the size of a picture weakens."""
LIGHT, RELIEF = 12, 16
"""Shares of a square's side, 1 / n, that are the standard deviations of what is taken as light, and as grain."""
DULL, WET = 0.35, 20.0
"""Wetness without reflections, and its growth with their share of the area."""
BANDS = (2, 16)
"""Distances in pixels at 512 from an outline between which the colours of both its sides are compared."""
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
    sigma = max(len(square) / LIGHT, 1.0)
    # The scene lights matter at about this scale; what changes faster, and slower than grain, is taken as relief.
    light, relief = _smooth(luma, sigma), _smooth(luma, max(len(square) / RELIEF, 1.0))
    colours = image[tissue].astype(np.float32) if tissue.any() else np.full((1, 3), USUAL_LUMA, np.float32)
    field = colours.mean(axis=0)
    tint = tint_of([float(value) for value in field], float(np.median(colours @ _LUMA)))
    ratio = _across(image, part, tissue)
    mean = square.mean(axis=(0, 1)) if ratio is None else _plain_mean(image, tissue) * ratio
    cast = np.dstack([_smooth(square[..., channel], sigma) for channel in range(3)])
    albedo = square / np.maximum(cast, 1.0) * mean / np.array(tint, np.float32)
    # What interpolation to the picture's size takes from the finest detail is added beforehand.
    albedo += SHARPER * (albedo - cv2.blur(albedo, (3, 3), borderType=cv2.BORDER_REFLECT))
    rough = _roughness(image, part, tissue)
    middle = albedo.mean(axis=(0, 1))
    albedo = middle + rough * (albedo - middle)
    height = 128 + 16 * STEEPNESS * rough * (relief / np.maximum(light, 1.0) - 1)
    surface = np.empty_like(square)
    surface[..., 0], surface[..., 1], surface[..., 2] = height, 255, 255 * min(DULL + WET * white, 1.0)
    return _mirrored(albedo), _mirrored(surface)


def _across(image: Image, part: Mask, tissue: Mask) -> NDArray[np.float32] | None:
    """Return an object's colour as share of the tissue's beside it, R, G and B; None without tissue beside it.

    Light is the same on both sides of an outline, so that only the matter differs.
    """
    unit = max(image.shape[:2]) / 512
    plain = image.min(axis=2) < WHITE_FROM
    kernels = [cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * round(width * unit) + 1,) * 2) for width in BANDS]
    sides = []
    for own, other in ((part & plain, tissue & plain), (tissue & plain, part & plain)):
        near, far = (cv2.dilate(other.view(np.uint8), kernel) for kernel in kernels)
        sides.append(own & (near == 0) & (far > 0))
    if min(np.count_nonzero(side) for side in sides) < 50:
        return None
    inside, outside = (image[side].astype(np.float32).mean(axis=0) for side in sides)
    return np.asarray(np.clip(inside / np.maximum(outside, 4.0), 0.1, 4.0), np.float32)


def _plain_mean(image: Image, tissue: Mask) -> NDArray[np.float32]:
    """Return the mean colour of tissue without the lamp's reflections, to which :func:`_across` relates an object."""
    return np.asarray(image[tissue & (image.min(axis=2) < WHITE_FROM)].mean(axis=0), np.float32)


def _roughness(image: Image, part: Mask, tissue: Mask) -> float:
    """Return usual mucosa's fine contrast as multiple of that of the tissue beside an object, 0.5 to 2."""
    size = tuple(max(round(side * LONGER_SIDE / max(part.shape)), 1) for side in part.shape[::-1])
    plain = tissue & (image.min(axis=2) < WHITE_FROM)
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    own, other = (
        cv2.resize(layer.view(np.uint8) * np.uint8(255), size, interpolation=cv2.INTER_AREA) for layer in (part, plain)
    )
    luma = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY).astype(np.float32)
    near, inner = cv2.dilate(own, np.ones((33, 33), np.uint8)), cv2.erode(other, np.ones((3, 3), np.uint8))
    beside = (near > 0) & (own == 0) & (inner == 255)
    if np.count_nonzero(beside) < 50:
        return 1.0
    steps = float(np.abs(luma - cv2.blur(luma, GRAIN))[beside].mean()) / max(float(luma[beside].mean()), 8.0)
    return min(max(USUAL_TEXTURE / max(steps, 1e-4), 0.5), 2.0)


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


def _smooth(values: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    return np.asarray(cv2.GaussianBlur(values, (0, 0), sigma, borderType=cv2.BORDER_REFLECT), np.float32)


def _mirrored(values: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Return a picture as uint8, mirrored beyond its sides to at least the least side of a swatch."""
    picture = np.clip(np.round(values), 0, 255).astype(np.uint8)
    missing = max(SIDES[0] - len(picture), 0)
    return np.asarray(np.pad(picture, ((0, missing), (0, missing), (0, 0)), mode="symmetric"), np.uint8)
