"""Numbers that describe an artefact against the tissue around it.

All lengths are pixels of a picture whose longer side is :data:`SIDE`. L, a, b are CIELAB (L from 0 to 100). The tissue
around an artefact is the ring from 5 to 32 pixels outside its outline. Colours leave highlights out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask

Floats: TypeAlias = NDArray[np.float32]

SIDE = 512
"""Longer side in pixels at which pictures are measured."""
RING = (5.0, 32.0)
"""Distances from the outline, in pixels, between which the tissue around an artefact lies."""
FEWEST_PIXELS = 200
"""Least pixels of an artefact and of the tissue around it."""
RIM = 3.0
"""Width in pixels of the rim, which is left out of the numbers of the inside."""
SMALLEST_PIECE = 64
"""Pixels below which a connected part of a mask is not a piece."""
HIGHLIGHT_VALUE, HIGHLIGHT_SATURATION = 235, 0.27
"""Highlights: brightest channel at least the first, saturation below the second."""
NOISE_SIGMA = 1.5
"""Standard deviation in pixels of the Gaussian that is subtracted to leave the noise."""
PROFILE = 8
"""Length in pixels of the profiles on both sides of an outline; rims wider than about 10 pixels are read too narrow."""
LEAST_STEP = 8.0
"""Least colour difference (CIELAB) across an outline at which its width is measured."""
MOST_PROFILES = 200
CONTACT = 6
"""Distance in pixels from the border of the field within which an artefact touches it."""


STATISTICS: Mapping[str, str] = {
    "lightness_offset": "L, inside minus around",
    "a_offset": "a, inside minus around",
    "b_offset": "b, inside minus around",
    "lightness_sd": "sd of L inside",
    "a_sd": "sd of a inside",
    "b_sd": "sd of b inside",
    "gradient": "mean gradient inside, L per px",
    "gradient_ratio": "gradient, inside over around",
    "noise": "noise inside (sd of fine L)",
    "noise_ratio": "noise, inside over around",
    "highlights": "highlights per 10,000 px inside",
    "rim_width": "rim, 10 to 90 % width, px",
    "pieces": "pieces",
    "largest": "share of the largest piece",
    "solidity": "solidity of the largest piece",
    "entry": "entry, hours on the clock",
    "area": "share of the field",
}
"""Columns of tables with their readable names and units, in the order of tables."""
WITHOUT_TARGET = ("area",)
"""Statistics that follow the levels; made artefacts should have the values of real ones in the others."""
TURNS = ("entry",)
"""Statistics on the clock face, in hours from 0 to 12: 12 and 0 are the same."""


def scaled(image: Image, *masks: Mask, shape: tuple[int, int] | None = None) -> tuple[Image, list[Mask]]:
    """Return an image and masks of its size with :data:`SIDE` pixels along the longer side.

    Args:
        image: uint8 H×W×3 RGB.
        masks: bool H×W.
        shape: Height and width of the scene if the image was stretched; its own by default.
    """
    height, width = shape or image.shape[:2]
    factor = SIDE / max(height, width)
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    if size == image.shape[1::-1]:
        return image, list(masks)
    shrinks = size[0] * size[1] < image.shape[0] * image.shape[1]
    resized = cv2.resize(image, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
    same = [cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST_EXACT) > 0 for mask in masks]
    return np.asarray(resized, np.uint8), same


def lab_of(image: Image) -> Floats:
    """Return CIELAB of a uint8 H×W×3 RGB image, float32 H×W×3."""
    return np.asarray(cv2.cvtColor(image.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB), np.float32)


def highlights_of(image: Image) -> Mask:
    """Return the highlights of a uint8 H×W×3 RGB image, bool H×W."""
    red, green, blue = cv2.split(image)
    value, least = cv2.max(cv2.max(red, green), blue), cv2.min(cv2.min(red, green), blue)
    return np.asarray((value >= HIGHLIGHT_VALUE) & (value - least < HIGHLIGHT_SATURATION * value), np.bool_)


def measure(image: Image, mask: Mask, field: Mask) -> dict[str, float] | None:
    """Return the statistics of an artefact; None if it or the tissue around it is too small.

    Args:
        image: uint8 H×W×3 RGB.
        mask: The artefact, bool H×W.
        field: The field of view, bool H×W.

    Returns:
        A value for every name of :data:`STATISTICS`; NaN for what this picture does not have, such as the entry of an
        artefact that does not touch the border of the field.
    """
    image, (mask, field) = scaled(image, mask, field)
    mask = pieces_only(mask & field)
    outside = _distance(~mask)
    around = field & (outside >= RING[0]) & (outside <= RING[1])
    if min(np.count_nonzero(mask), np.count_nonzero(around)) < FEWEST_PIXELS:
        return None
    lab, spots = lab_of(image), highlights_of(image)
    inner = _inner(mask)
    inside_colours, around_colours = _colours(lab, inner, spots), _colours(lab, around, spots)
    offset = inside_colours.mean(axis=0) - around_colours.mean(axis=0)
    sd = inside_colours.std(axis=0)
    lightness = np.ascontiguousarray(lab[:, :, 0])
    area = int(np.count_nonzero(mask))
    steepness = gradient_of(lightness)
    gradient, noise = float(steepness[inner].mean()), noise_of(lightness, inner)
    return {
        "lightness_offset": float(offset[0]),
        "a_offset": float(offset[1]),
        "b_offset": float(offset[2]),
        "lightness_sd": float(sd[0]),
        "a_sd": float(sd[1]),
        "b_sd": float(sd[2]),
        "gradient": gradient,
        "gradient_ratio": _over(gradient, float(steepness[around].mean())),
        "noise": noise,
        "noise_ratio": _over(noise, noise_of(lightness, around)),
        "highlights": 1e4 * (cv2.connectedComponents((spots & mask).astype(np.uint8), connectivity=8)[0] - 1) / area,
        "rim_width": _rim_width(lab, mask, field, outside, inside_colours, around_colours),
        **_shape(mask),
        "entry": _entry(mask, field),
        "area": area / max(1, int(np.count_nonzero(field))),
    }


def pieces_only(mask: Mask, least: float = SMALLEST_PIECE, connectivity: int = 8) -> Mask:
    """Return a mask without its connected parts below some pixels."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=connectivity)
    large = stats[:, cv2.CC_STAT_AREA] >= least
    large[0] = False
    return np.asarray(large[labels], np.bool_)


def outline_of(mask: Mask) -> Mask:
    """Return the pixels of a mask that touch its outside, bool H×W; the picture's border is not outside."""
    return np.asarray(mask & (cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8)) == 0), np.bool_)


def gradient_of(lightness: Floats) -> Floats:
    """Return the length of the gradient by Sobel's filter, per pixel, of float32 H×W."""
    columns, rows = (cv2.Sobel(lightness, cv2.CV_32F, *order, scale=1 / 8) for order in ((1, 0), (0, 1)))
    return np.asarray(np.hypot(rows, columns), np.float32)


def noise_of(lightness: Floats, mask: Mask) -> float:
    """Return the robust standard deviation of the finest detail of float32 H×W inside a mask."""
    fine = (lightness - cv2.GaussianBlur(lightness, (0, 0), NOISE_SIGMA))[mask]
    return float(1.4826 * np.median(np.abs(fine - np.median(fine))))


def _distance(mask: Mask) -> Floats:
    return np.asarray(cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5), np.float32)


def _inner(mask: Mask) -> Mask:
    """Return a mask without its rim, or the mask itself if little more than the rim is there."""
    inner = np.asarray(_distance(np.pad(mask, 1))[1:-1, 1:-1] > RIM, np.bool_)
    return inner if np.count_nonzero(inner) >= FEWEST_PIXELS else mask


def _colours(lab: Floats, mask: Mask, spots: Mask) -> Floats:
    """Return the colours of a region without highlights, N×3; with them if nothing else is left."""
    calm = mask & (cv2.dilate(spots.astype(np.uint8), np.ones((5, 5), np.uint8)) == 0)
    return np.asarray(lab[calm if np.count_nonzero(calm) >= FEWEST_PIXELS // 4 else mask], np.float32)


def _over(inside: float, around: float) -> float:
    return inside / around if around > 0 else math.nan


def _shape(mask: Mask) -> dict[str, float]:
    """Return the number of pieces, the largest one's share of the area, and its share of its convex hull."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    areas = stats[1:, cv2.CC_STAT_AREA]
    largest = (labels == 1 + int(np.argmax(areas))).astype(np.uint8)
    points = np.concatenate(cv2.findContours(largest, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0])
    hull = np.zeros_like(largest)
    cv2.fillConvexPoly(hull, cv2.convexHull(points), 1)
    return {
        "pieces": float(len(areas)),
        "largest": float(areas.max() / areas.sum()),
        "solidity": float(areas.max() / max(1, np.count_nonzero(hull))),
    }


def _entry(mask: Mask, field: Mask) -> float:
    """Return the hour (0 to 12) at which the mask touches the border of the field; NaN if it does not."""
    border = field & (_distance(np.pad(field, 1))[1:-1, 1:-1] <= CONTACT)
    rows, columns = np.nonzero(mask & border)
    if len(rows) < CONTACT:
        return math.nan
    middle = [float(places.mean()) for places in np.nonzero(field)]
    turn = math.atan2(float(columns.mean()) - middle[1], middle[0] - float(rows.mean())) / (2 * math.pi)
    return 12 * (turn % 1.0)


def _rim_width(
    lab: Floats, mask: Mask, field: Mask, outside: Floats, inside_colours: Floats, around_colours: Floats
) -> float:
    """Return the median distance over which the colour goes from 10 to 90 % across the outline; NaN if unclear.

    Profiles lie along the normals, with the colour along the line from the tissue's colour to the artefact's. Profiles
    that leave the field, meet another outline or have a small step are left out.
    """
    signed = cv2.GaussianBlur(_distance(mask) - outside, (0, 0), 2.0)
    rows, columns = np.nonzero(outline_of(mask))
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_PROFILES)).astype(int))
    rows, columns = rows[chosen], columns[chosen]
    down, right = np.gradient(signed)
    normal = np.stack([down[rows, columns], right[rows, columns]])
    normal /= np.maximum(np.linalg.norm(normal, axis=0), 1e-6)
    steps = np.arange(-PROFILE, PROFILE + 0.25, 0.5, dtype=np.float32)
    y = (rows + steps[:, None] * normal[0]).astype(np.float32)
    x = (columns + steps[:, None] * normal[1]).astype(np.float32)
    axis = inside_colours.mean(axis=0) - around_colours.mean(axis=0)
    length = float(np.linalg.norm(axis))
    if length < 1e-6:
        return math.nan
    along = (lab @ (axis / length).astype(np.float32)).astype(np.float32)
    profiles = cv2.remap(along, x, y, cv2.INTER_LINEAR)
    side = cv2.remap(signed.astype(np.float32), x, y, cv2.INTER_LINEAR, borderValue=np.nan)
    in_field = cv2.remap(field.astype(np.float32), x, y, cv2.INTER_LINEAR) > 0.99
    good = in_field.all(axis=0) & (side[0] < -PROFILE / 2) & (side[-1] > PROFILE / 4)
    widths = [width for place in np.flatnonzero(good) if (width := _width(profiles[:, place])) is not None]
    return float(np.median(widths)) if len(widths) >= 5 else math.nan


def _width(profile: Floats) -> float | None:
    """Return the width of the step in a profile of half pixels, from outside to inside; None if there is none."""
    ends = len(profile) // 4
    low, high = float(np.median(profile[:ends])), float(np.median(profile[-ends:]))
    if high - low < LEAST_STEP:
        return None
    share = (profile - low) / (high - low)
    middle = len(share) // 2
    crossings = np.flatnonzero((share[:-1] < 0.5) & (share[1:] >= 0.5))
    if len(crossings) == 0:
        return None
    at = int(crossings[np.argmin(np.abs(crossings - middle))])
    below = np.flatnonzero(share[: at + 1] <= 0.1)
    above = np.flatnonzero(share[at:] >= 0.9)
    if len(below) == 0 or len(above) == 0:
        return None
    first, last = int(below[-1]), at + int(above[0])
    start = first + (0.1 - share[first]) / max(share[first + 1] - share[first], 1e-6)
    end = last - (share[last] - 0.9) / max(share[last] - share[last - 1], 1e-6)
    return float(end - start) / 2
