"""Reflections of the lamp on wet tissue: ragged spots along folds where the surface faces the lens.

Sizes, number, colour and profile follow 5,780 reflections in 120 pictures of Kvasir-SEG.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.portable import exp, key_generator
from medtest.core.recent import per_seed
from medtest.relations.objects.scene import COARSE, WHITE_FROM, SceneEstimate, channel_limits, scene_of

Spot: TypeAlias = list[float]
"""[x, y, a, b, angle, outline]: centre and semi-axes in pixels, angle in degrees, number of the outline."""

CANDIDATES = 512
"""Spots drawn for a ladder, whatever the severity, so that severities share them."""
SPREAD = 1.4
"""Standard deviation of the logarithm of a spot's area."""
AREAS = (0.2, 30.0)
"""Least and largest area as multiples of the median."""
ELONGATION = (2.1, 0.4)
"""Median of the ratio of the axes, and standard deviation of its logarithm."""
SLENDER = 0.1
"""Exponent of the area in that ratio: large reflections are long."""
LONGEST = 6.0
IN_STRING = 0.6
"""Probability that a spot lies near another place that shines, along the fold."""
ALONG, ACROSS = 0.05, 0.008
"""Standard deviation of that distance along and across the fold, as fraction of the longer side."""
TURN = 35.0
"""Standard deviation in degrees of the angle to the fold where folds are unclear."""
RIM = 3.0
"""Least distance in work cells from the rim of the field."""
PROFILE = (1.15, 0.45, -0.15, -0.1, -0.05, 0.0)
"""Opacity at 0 to 5 pixels (of 512) from a spot before it is smoothed over 3 × 3 pixels, which leaves about 42 % at 1
pixel and the dark ring of the camera's sharpening at 2 to 4 pixels."""
ZERO = 64
"""Value of an opacity of 0 in 8 bits."""
EDGE = 0.6
"""Standard deviation in pixels of that smoothing, weights of about 1 : 4 : 1."""
FULL = 0.97
"""Largest opacity."""
WHITER = 0.35
"""Share of the way from the scene's mean colour of reflections to white at full opacity."""
RING = (1.5, 0.9, 0.5)
"""Share of the dark ring in R, G and B: red loses most, so that the ring is greyish."""
GROUPS = 25
"""Work cells around a reflection of the image in which others are likely."""
OUTLINES, CORNERS = 48, 24
"""Number of ragged outlines, and their corners."""
RAGGED = (0.0, 0.16, 0.14, 0.10, 0.08)
"""Amplitude of the waves around an outline, by their number less one, as share of the radius."""
_SUBPIXEL = 4
_CROSS, _SQUARE = (np.asarray(cv2.getStructuringElement(shape, (3, 3))) for shape in (cv2.MORPH_CROSS, cv2.MORPH_RECT))


def draw_ladder(seed: PreparedSeed, rng: np.random.Generator, radius: float) -> NDArray[np.float64]:
    """Draw all spots of a ladder, the first first: float64 N×6, the columns of :data:`Spot`.

    Args:
        seed: The prepared seed.
        rng: The ladder's random generator.
        radius: Radius in pixels of a disc as large as the median spot.

    Raises:
        NotApplicable: The field faces the lamp nowhere.
    """
    scene = scene_of(seed)
    totals = _facing(seed)
    whole = int(totals[-1])
    if whole == 0:
        raise NotApplicable("the field faces the lamp nowhere")
    n, columns = CANDIDATES, scene.shape[1]
    cells = np.searchsorted(totals, (rng.random(n) * whole).astype(np.int64), side="right")
    within = rng.random((n, 2))
    string, parents = rng.random(n) < IN_STRING, (rng.random(n) * np.arange(1, n + 1)).astype(np.intp)
    along, across, turn, size, slender = rng.standard_normal((5, n))
    outline = rng.integers(OUTLINES, size=n)
    rows, cols = np.divmod(np.where(string, cells[parents], cells), columns)
    fold = scene.folds[rows // COARSE, cols // COARSE]
    clear = np.minimum(1.0, 2.5 * fold[:, 2])
    # Half-angle formulas give the direction of the fold from the cosine and sine of twice its angle.
    cosine = np.sqrt(np.maximum(1.0 + fold[:, 0], 0.0) / 2.0)
    sine = np.where(fold[:, 1] < 0, -1.0, 1.0) * np.sqrt(np.maximum(1.0 - fold[:, 0], 0.0) / 2.0)
    longer = max(seed.height, seed.width)
    step, aside = string * along * ALONG * longer, string * across * ACROSS * longer
    scale_x, scale_y = seed.width / columns, seed.height / scene.shape[0]
    x = (cols + within[:, 0]) * scale_x - 0.5 + step * cosine - aside * sine
    y = (rows + within[:, 1]) * scale_y - 0.5 + step * sine + aside * cosine
    area = np.clip(exp(SPREAD * size), *AREAS)
    ratio = np.clip(ELONGATION[0] * exp(ELONGATION[1] * slender + SLENDER * SPREAD * size), 1.0, LONGEST)
    a, b = radius * np.sqrt(area * ratio), radius * np.sqrt(area / ratio)
    degrees = [math.degrees(math.atan2(s, c)) for s, c in zip(sine.tolist(), cosine.tolist(), strict=True)]
    angle = np.array(degrees) + turn * TURN * (1.0 - 0.8 * clear)
    spots = np.stack([x, y, a, b, angle, outline], axis=1)
    return np.round(spots[_lit(totals, scene, x / scale_x, y / scale_y)], 2)


@per_seed
def _facing(seed: PreparedSeed) -> NDArray[np.int64]:
    """Return cumulated weights of the work cells: light, ridges, off the rim, off text and off what shines already."""
    scene = scene_of(seed)
    rows, columns = scene.shape
    light = np.clip(scene.light, 0.0, 1.7)
    weight = light * light * light * np.clip(np.float32(0.25) - np.float32(1.6) * scene.valley, 0.02, 1.0)
    small = cv2.resize(seed.image, (columns, rows), interpolation=cv2.INTER_AREA)
    white = channel_limits(np.asarray(small, np.uint8))[1] >= WHITE_FROM
    beside = cv2.blur(white.view(np.uint8) * np.uint8(255), (GROUPS, GROUPS))
    weight *= np.float32(0.3) + np.minimum(beside, np.uint8(18)) / np.float32(18)
    text = cv2.resize(scene.overlay.view(np.uint8), (columns, rows), interpolation=cv2.INTER_NEAREST) > 0
    usable = scene.field & (scene.rim > RIM) & ~text & ~white & (scene.light > 0.45)
    return np.cumsum(np.where(usable, np.rint(weight * np.float32(1000)), 0).astype(np.int64).ravel())


def _lit(
    totals: NDArray[np.int64], scene: SceneEstimate, x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return True for places, in work cells, of any weight."""
    rows, columns = scene.shape
    row, column = np.floor(y + 0.5).astype(np.intp), np.floor(x + 0.5).astype(np.intp)
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    index = np.where(inside, row * columns + column, 0)
    before = np.where(index > 0, totals[np.maximum(index - 1, 0)], 0)
    return np.asarray(inside & (totals[index] > before), np.bool_)


@lru_cache(maxsize=1)
def _outlines() -> NDArray[np.float64]:
    """Return the corners of ragged outlines of area π, float64 outlines × corners × 2."""
    rng = key_generator(["medtest.relations.clinical.reflections", "outlines"])
    turns = [2.0 * math.pi * corner / CORNERS for corner in range(CORNERS)]
    outlines = []
    for _ in range(OUTLINES):
        waves = [(size * float(rng.standard_normal()), float(rng.uniform(0.0, 2.0 * math.pi))) for size in RAGGED]
        radii = [
            max(0.35, 1.0 + sum(size * math.cos((k + 1) * turn + phase) for k, (size, phase) in enumerate(waves)))
            for turn in turns
        ]
        level = math.sqrt(math.fsum(radius * radius for radius in radii) / CORNERS)
        outlines.append(
            [(r / level * math.cos(turn), r / level * math.sin(turn)) for r, turn in zip(radii, turns, strict=True)]
        )
    return np.array(outlines)


@lru_cache(maxsize=8)
def _profile(longer: int) -> NDArray[np.uint8]:
    """Return opacities by distance from a spot in pixels: 128 is 1, above :data:`ZERO`, up to the first without.

    Args:
        longer: Longer side of the image in pixels.
    """
    reach = math.ceil((len(PROFILE) - 1) * longer / 512)
    opacity = np.interp(np.arange(reach + 1) * 512 / longer, np.arange(len(PROFILE)), PROFILE)
    return np.rint(opacity * 128 + ZERO).astype(np.uint8)


def _levels(spots: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the opacity around spots (uint8 H×W, 1 on a spot) as in :func:`_profile`, smoothed over 3 × 3 pixels."""
    profile = _profile(max(spots.shape))
    near, rings = spots, spots.copy()
    # Spots that grow by a cross and a square in turn have the distances of an octagon, far cheaper than exact ones.
    for step in range(1, len(profile) - 1):
        near = np.asarray(cv2.dilate(near, _CROSS if step % 2 else _SQUARE), np.uint8)
        cv2.add(rings, near, dst=rings)
    table = np.full(256, ZERO, np.uint8)
    table[1 : len(profile)] = profile[-2::-1]
    return np.asarray(cv2.GaussianBlur(cv2.LUT(rings, table), (3, 3), EDGE), np.uint8)


def shine(seed: PreparedSeed, spots: list[Spot]) -> Image:
    """Return the image with reflections in the scene's own colour; the frame stays as it is."""
    values = np.array(spots, np.float64)
    turns = [math.radians(angle) for angle in values[:, 4].tolist()]
    cosine = np.array([math.cos(turn) for turn in turns])[:, None]
    sine = np.array([math.sin(turn) for turn in turns])[:, None]
    # OpenCV fills every pixel that the outline touches, half a pixel more on each side.
    corners = _outlines()[values[:, 5].astype(np.intp)] * np.maximum(values[:, None, 2:4] - 0.5, 0.1)
    x = values[:, 0, None] + corners[..., 0] * cosine - corners[..., 1] * sine
    y = values[:, 1, None] + corners[..., 0] * sine + corners[..., 1] * cosine
    covered = np.zeros((seed.height, seed.width), np.uint8)
    shapes = np.rint(np.stack([x, y], axis=2) * (1 << _SUBPIXEL)).astype(np.int32)
    for shape in shapes:
        cv2.fillPoly(covered, [shape], 1, cv2.LINE_8, _SUBPIXEL)
    levels = _levels(covered)
    near = np.flatnonzero((levels != ZERO) & ~seed.frame)
    cover = np.minimum((levels.ravel()[near].astype(np.float32) - np.float32(ZERO)) / np.float32(128), np.float32(FULL))
    image = seed.image.copy()
    flat = image.reshape(-1, 3)
    part = flat[near].astype(np.float32)
    colour = np.array([value + WHITER * (255.0 - value) for value in scene_of(seed).highlight], np.float32)
    # What shines already stays as bright as it is.
    step = np.maximum(colour - part, np.float32(0))
    ring = np.minimum(cover, np.float32(0)) * step[:, 1]
    change = np.maximum(cover, np.float32(0))[:, None] * step + ring[:, None] * np.array(RING, np.float32)
    flat[near] = np.clip(part + change + np.float32(0.5), 0, 255).astype(np.uint8)
    return image


def as_spots(ladder: NDArray[Any]) -> list[Spot]:
    """Return rows of a ladder as JSON values."""
    return [[*row[:5], int(row[5])] for row in ladder.tolist()]
