"""Estimate of a scene: where light falls, where folds run, how noisy and how sharp the picture is.

Estimated once a seed on a small grid, the *work grid*: 256 cells along the longer side. Relations that put matter into
the picture light it with this estimate. Only integers, sums, products, quotients and square roots are used, so that the
values are the same on every processor (:mod:`medtest.core.portable`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.recent import per_seed
from medtest.relations.objects.matter.around import LIMITS as LIGHT_LIMITS
from medtest.relations.objects.matter.around import tissue_around
from medtest.relations.objects.matter.noise_bank import tile
from medtest.relations.placement import keep_out, lesion_distance

LONGER_SIDE = 256
"""Cells of the work grid along the longer side of the image."""
COARSE = 8
"""Work cells along a side of one coarse cell, in which light and folds are estimated."""
BRIGHTEST = 225
"""Luma above which a pixel does not raise the estimate of the light, so that reflections do not count."""
HIGHLIGHT = (248.0, 224.0, 203.0)
"""Mean colour of 5,780 reflections in Kvasir-SEG."""
WHITE_FROM = 190
"""Least channel from which a pixel counts as a reflection of the lamp."""
SHAPE = (9, 9)
"""Work cells over which light is averaged twice where it follows the shape of folds."""
USUAL = (158.0, 91.0, 59.0)
"""Median R, G, B of mucosa beside stool, to which swatches are coloured."""
USUAL_LUMA = 107.4
USUAL_NOISE = 0.86
"""Median of the noise in 50 colonoscopy pictures, in grey levels at 512 pixels."""
STREAK_STEPS = (-7, -5, -3, -1, 1, 3, 5, 7)
"""Places along a fold, in cells of half the work grid, whose noise makes a streak."""
MOST_TOOL = 0.35
"""Share of the field above which grey is the picture's own colour."""
RIM_WIDTH = 5.0
"""Width of a rim, 10 to 90 %, in pixels of the original image (measured: 3–5)."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class SceneEstimate:
    """Estimate of a seed's scene; arrays are of the work grid's shape.

    Attributes:
        shape: Rows and columns of the work grid.
        cell: Prepared pixels along a side of a work cell.
        field: bool, the field of view.
        tool: bool, large grey things in it: instruments and the scope's own shaft. False where most of it is grey.
        light: Illumination as share of the field's median.
        local: Colour of the tissue around as share of the field's mean colour, 3×places: light and cast of each place.
        texture: Fine contrast of the tissue around each place as multiple of usual mucosa's, 0.6 to 1.7.
        mean: The field's mean colour without reflections, R, G and B.
        rim: Distance from the rim of the field, in work cells.
        glare: Share of the places around that are white from the lamp, 0 to 1.
        free: Distance from what the case keeps free (the lesion), in work cells; large without.
        valley: How much darker a place is than its surroundings, about −1 to 1: between folds > 0, on ridges < 0.
        grain: The same at the scale of a few pixels.
        lamp_x: Component of the direction to the lamp, which sits at the lens, towards +x.
        lamp_y: Component towards +y.
        folds: float64 of the coarse shape plus (3,): cos and sin of twice the direction of folds, and coherence 0–1.
        flow: Noise of standard deviation about 1, drawn out along folds.
        overlay: bool of the prepared image's shape: text and boxes burnt into the picture.
        gravity: Direction in which liquids run, x and y of length 1; drawn from the image alone.
        tint: Factors on R, G and B of what was coloured for usual mucosa: the field's brightness, part of its cast.
        highlight: Colour of reflections.
        noise: Standard deviation of the noise in grey levels.
        detail: Fine detail of the picture as multiple of a usual one's, 0.5 to 1.8, which matter shares.
        blur: Width of a rim in prepared pixels, 10 to 90 %.
        centre: Column and row of the field's centre in work cells.
        radius: Radius of the disc with the field's area in work cells.
    """

    shape: tuple[int, int]
    cell: float
    field: Mask
    tool: Mask
    light: Floats
    local: Floats
    texture: Floats
    mean: tuple[float, float, float]
    rim: Floats
    glare: Floats
    free: Floats
    valley: Floats
    grain: Floats
    lamp_x: Floats
    lamp_y: Floats
    folds: NDArray[np.float64]
    flow: Floats
    overlay: Mask
    gravity: tuple[float, float]
    tint: tuple[float, float, float]
    highlight: tuple[float, float, float]
    noise: float
    detail: float
    blur: float
    centre: tuple[float, float]
    radius: float


@per_seed
def scene_of(seed: PreparedSeed) -> SceneEstimate:
    """Return the estimate of a seed's scene.

    Raises:
        NotApplicable: The image has no field of view.
    """
    longer = max(seed.height, seed.width)
    rows, columns = (
        COARSE * max(1, round(side * LONGER_SIDE / (COARSE * longer))) for side in (seed.height, seed.width)
    )
    small = np.asarray(cv2.resize(seed.image, (columns, rows), interpolation=cv2.INTER_AREA), np.uint8)
    field = cv2.resize(seed.frame.view(np.uint8), (columns, rows), interpolation=cv2.INTER_NEAREST) == 0
    if not field.any():
        raise NotApplicable("no field of view: the whole image is black frame")
    luma = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.uint8)
    pixels = int(np.count_nonzero(field))
    total = cv2.sumElems(cv2.bitwise_and(small, small, mask=field.view(np.uint8)))[:3]
    even = np.minimum(luma, np.uint8(BRIGHTEST))
    light, middle = _light(even, field)
    plain = field & (channel_limits(small)[1] < WHITE_FROM)
    local, texture, mean = tissue_around(small, even, plain if plain.any() else field, light)
    folds = _folds(even)
    across, down = (np.count_nonzero(field, axis=axis) @ np.arange(field.shape[1 - axis]) for axis in (0, 1))
    centre = (float(across) / pixels, float(down) / pixels)
    radius = math.sqrt(pixels / math.pi)
    cell = longer / max(rows, columns)
    free = cv2.resize(_away(seed), (columns, rows), interpolation=cv2.INTER_NEAREST) / np.float32(cell)
    padded = np.pad(field, 1).view(np.uint8)
    rim = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_5)[1:-1, 1:-1]
    noise = _noise(seed)
    original = seed.height if seed.original_mask is None else seed.original_mask.shape[0]
    return SceneEstimate(
        shape=(rows, columns),
        cell=cell,
        field=field,
        tool=_tool(small, field),
        light=light,
        local=local,
        texture=texture,
        mean=mean,
        rim=np.asarray(rim, np.float32),
        glare=cv2.blur((field & ~plain).view(np.uint8) * np.uint8(255), SHAPE).astype(np.float32) / np.float32(255),
        free=np.asarray(free, np.float32),
        valley=_darker(even, 5, 21),
        grain=_darker(even, 1, 7),
        lamp_x=np.broadcast_to(((centre[0] - np.arange(columns)) / radius * 0.6).astype(np.float32), (rows, columns)),
        lamp_y=np.broadcast_to(
            ((centre[1] - np.arange(rows)) / radius * 0.6).astype(np.float32)[:, None], (rows, columns)
        ),
        folds=folds,
        flow=_flow(folds),
        overlay=_overlay(seed, centre[0] * cell, radius * cell),
        gravity=_gravity(small),
        tint=tint_of([float(value) / pixels for value in total], middle),
        highlight=_highlight(small, field),
        noise=noise,
        detail=min(max(noise / USUAL_NOISE, 0.5), 1.8),
        blur=min(max(RIM_WIDTH * seed.height / original, 2.5), 0.02 * longer),
        centre=centre,
        radius=radius,
    )


def _away(seed: PreparedSeed) -> Floats:
    """Return the distance from what the case keeps free in prepared pixels; large without."""
    away = lesion_distance(seed)
    if away is None:
        blocked = keep_out(seed, margin=0)
        away = (
            _distance(blocked) if blocked.any() else np.full(seed.frame.shape, 4.0 * max(seed.frame.shape), np.float32)
        )
    return away if seed.avoid is None else np.minimum(away, _distance(seed.avoid))


def _distance(blocked: Mask) -> Floats:
    return np.asarray(cv2.distanceTransform((~blocked).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5), np.float32)


def _cells(values: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Return sums over the coarse cells of a work grid; whole numbers, below 2**31 a cell."""
    rows, columns = values.shape
    lines = values.reshape(rows // COARSE, COARSE, columns)
    total = np.zeros((rows // COARSE, columns // COARSE), np.int32)
    # Sums of few long arrays are several times faster than one sum over short axes.
    across = lines[:, 0].astype(np.int32)
    for step in range(1, COARSE):
        across += lines[:, step]
    for step in range(COARSE):
        total += across[:, step::COARSE]
    return total.astype(np.float64)


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values smoothed by a binomial of 5 × 5 coarse cells along the last two axes; the border is repeated."""
    shape = values.shape
    edge = np.zeros((*shape[:-2], shape[-2] + 2, shape[-1] + 2))
    edge[..., 1:-1, 1:-1] = values
    for _ in range(2):
        edge[..., 0, :], edge[..., -1, :] = edge[..., 1, :], edge[..., -2, :]
        edge[..., 1:-1, :] = (edge[..., :-2, :] + 2.0 * edge[..., 1:-1, :] + edge[..., 2:, :]) / 4.0
        edge[..., 0], edge[..., -1] = edge[..., 1], edge[..., -2]
        edge[..., 1:-1] = (edge[..., :-2] + 2.0 * edge[..., 1:-1] + edge[..., 2:]) / 4.0
    return edge[..., 1:-1, 1:-1]


def enlarge(values: NDArray[np.float64], factor: int = COARSE) -> Floats:
    """Return a coarse grid at ``factor`` times its size, interpolated linearly between the centres of its cells."""
    for axis in (0, 1):
        size = values.shape[axis]
        places = np.clip((np.arange(size * factor) + 0.5) / factor - 0.5, 0.0, size - 1.0)
        low = np.minimum(places.astype(np.intp), max(size - 2, 0))
        share = (places - low)[:, None] if axis == 0 else (places - low)[None, :]
        first, second = values.take(low, axis), values.take(np.minimum(low + 1, size - 1), axis)
        values = first + (second - first) * share
    return values.astype(np.float32)


def _light(even: NDArray[np.uint8], field: Mask) -> tuple[Floats, float]:
    """Return the illumination relative to the median of the field, and that median; it continues below the frame."""
    capped = np.where(field, even, 0).astype(np.uint8)
    total, weight = _spread(np.stack([_cells(capped), _cells(field.view(np.uint8))]))
    measured = weight > 0.05
    mean = np.where(measured, total / np.maximum(weight, 1e-6), 0.0)
    share = measured.astype(np.float64)
    for _ in range(4 if share.min() == 0 else 0):
        wide, wide_share = _spread(np.stack([mean * share, share]))
        fill = (share == 0) & (wide_share > 0)
        mean = np.where(fill, wide / np.maximum(wide_share, 1e-9), mean)
        share = np.where(fill, 1.0, share)
    middle = max(float(np.sort(mean[measured], kind="stable")[np.count_nonzero(measured) // 2]), 8.0)
    coarse = enlarge(mean)
    # Matter takes the shape of the folds below, so their shading stays in the light.
    near, inside = (cv2.blur(cv2.blur(part, SHAPE), SHAPE) for part in (capped, field.view(np.uint8) * np.uint8(255)))
    fine = np.where(inside > 64, near * np.float32(255) / np.maximum(inside, 1), coarse)
    low, high = map(np.float32, LIGHT_LIMITS)
    mixed = (coarse + fine.astype(np.float32)) * np.float32(0.5 / middle)
    return np.asarray(np.clip(mixed, low, high), np.float32), middle


def tint_of(mean: Sequence[float], middle: float) -> tuple[float, float, float]:
    """Return the factors on R, G and B from usual mucosa to a field of this mean colour and median luma."""
    luma = 0.299 * mean[0] + 0.587 * mean[1] + 0.114 * mean[2]
    bright = min(max(middle / USUAL_LUMA, 0.3), 1.35)
    red, green, blue = (
        bright * min(max(math.sqrt(math.sqrt(max(value, 1.0) * USUAL_LUMA / (usual * max(luma, 1.0)))), 0.8), 1.2)
        for value, usual in zip(mean, USUAL, strict=True)
    )
    return red, green, blue


def _gravity(small: NDArray[np.uint8]) -> tuple[float, float]:
    digest = hashlib.sha256(small[::COARSE, ::COARSE].tobytes()).digest()
    x, y = (int.from_bytes(digest[start : start + 4], "big") / 2**31 - 1.0 for start in (0, 4))
    length = math.sqrt(x * x + y * y)
    return (x / length, y / length) if length > 1e-3 else (0.0, 1.0)


def _flow(folds: NDArray[np.float64]) -> Floats:
    """Return noise averaged along the direction of folds, on half the work grid and enlarged."""
    noise = tile("fine")[: folds.shape[0] * 4, : folds.shape[1] * 4]
    cosine, sine, coherence = (enlarge(folds[..., part], 4) for part in range(3))
    # Where folds are unclear, streaks are short.
    reach = np.minimum(np.float32(1.0), np.float32(0.25) + np.float32(2.5) * coherence)
    across = np.sqrt(np.maximum((np.float32(1) + cosine) * np.float32(0.5), 0)) * reach
    down = np.sqrt(np.maximum((np.float32(1) - cosine) * np.float32(0.5), 0)) * reach
    down = np.where(sine < 0, -down, down)
    rows, columns = noise.shape
    y, x = np.arange(rows, dtype=np.float32)[:, None], np.arange(columns, dtype=np.float32)[None, :]
    total = np.zeros(noise.shape, np.float32)
    for step in STREAK_STEPS:
        row = np.clip(y + np.float32(step) * down, 0, rows - 1).astype(np.intp)
        column = np.clip(x + np.float32(step) * across, 0, columns - 1).astype(np.intp)
        total += noise[row, column]
    return enlarge(total.astype(np.float64) * (1.7 / len(STREAK_STEPS)), 2)


def channel_limits(image: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the largest and least channel of each pixel."""
    red, green, blue = cv2.split(image)
    limits = cv2.max(cv2.max(red, green), blue), cv2.min(cv2.min(red, green), blue)
    return np.asarray(limits[0], np.uint8), np.asarray(limits[1], np.uint8)


def _tool(small: NDArray[np.uint8], field: Mask) -> Mask:
    most, least = channel_limits(small)
    grey = field & (most > 50) & (most < 215) & (5 * (most - least).astype(np.int16) < most)
    opened = cv2.morphologyEx(grey.view(np.uint8) * np.uint8(255), cv2.MORPH_OPEN, np.ones((11, 11), np.uint8))
    large = cv2.blur(cv2.blur(opened, SHAPE), SHAPE) > 127  # with rounded corners
    large &= np.count_nonzero(large) < MOST_TOOL * np.count_nonzero(field)
    return np.asarray(large, np.bool_)


def _overlay(seed: PreparedSeed, middle: float, radius: float) -> Mask:
    """Return bool H×W, True on rows of glyphs off the middle of the field and on green boxes."""
    red, green, blue = cv2.split(seed.image)
    least = cv2.min(cv2.min(red, green), blue)
    unit = max(seed.height, seed.width) / 512
    box = cv2.bitwise_and(cv2.inRange(cv2.subtract(green, red), 41, 255), cv2.compare(green, blue, cv2.CMP_GE))
    # White strokes stand out in the channel that tissue has least of, on dark and on bright tissue.
    strokes = cv2.morphologyEx(least, cv2.MORPH_TOPHAT, np.ones((round(11 * unit) | 1,) * 2, np.uint8))
    thin = cv2.bitwise_and(cv2.inRange(strokes, 29, 255), cv2.inRange(least, 91, 255))
    # Rows of glyphs are found at half the size, which takes a quarter of the time.
    half = cv2.dilate(thin, np.ones((2, 2), np.uint8), anchor=(0, 0))[::2, ::2]
    joined = cv2.dilate(half, np.ones((1, (round(9 * unit) // 2 + 1) | 1), np.uint8))
    _, labels, stats, centres = cv2.connectedComponentsWithStats(joined)
    _, _, width, height, _ = 2 * stats.T
    text = (width >= 22 * unit) & (width >= 1.8 * height) & (height >= 5 * unit) & (height - 2 <= 18 * unit)
    text &= np.abs(2 * centres[:, 0] + 0.5 - middle) > 0.4 * radius
    text[0] = False
    if text.any():
        rows = np.where(text[labels], np.uint8(255), np.uint8(0)).repeat(2, axis=0).repeat(2, axis=1)
        glyphs = cv2.bitwise_and(thin, rows[: seed.height, : seed.width])
        box = cv2.bitwise_or(box, cv2.dilate(glyphs, np.ones((3, 3), np.uint8)))
    return np.asarray(box > 0, np.bool_)


def _darker(luma: NDArray[np.uint8], fine: int, wide: int) -> Floats:
    near = cv2.blur(luma, (fine, fine)).astype(np.int16) if fine > 1 else luma.astype(np.int16)
    darker = (cv2.blur(luma, (wide, wide)).astype(np.int16) - near).astype(np.float32) / np.float32(24)
    return np.asarray(np.clip(darker, -1, 1), np.float32)


def _folds(luma: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return direction and coherence of folds by the structure tensor of the coarse cells."""
    across = cv2.Sobel(luma, cv2.CV_16S, 1, 0).astype(np.int32)
    down = cv2.Sobel(luma, cv2.CV_16S, 0, 1).astype(np.int32)
    xx, yy, xy = _spread(np.stack([_cells(part) for part in (across * across, down * down, across * down)]))
    # Folds run across the gradient, so cos and sin of twice the angle change their signs.
    cosine, sine, trace = yy - xx, -2.0 * xy, xx + yy + 1e3
    length = np.sqrt(cosine * cosine + sine * sine)
    safe = np.maximum(length, 1e-9)
    return np.stack([cosine / safe, sine / safe, length / trace], axis=2)


def _highlight(small: NDArray[np.uint8], field: Mask) -> tuple[float, float, float]:
    """Return the mean colour of the scene's reflections, drawn towards the usual one where there are few."""
    white = field & (channel_limits(small)[1] >= WHITE_FROM)
    count = int(np.count_nonzero(white))
    total = cv2.sumElems(cv2.bitwise_and(small, small, mask=white.view(np.uint8)))[:3]
    few = 60
    mixed = [(float(value) + few * usual) / (count + few) for value, usual in zip(total, HIGHLIGHT, strict=True)]
    return mixed[0], mixed[1], mixed[2]


def _noise(seed: PreparedSeed) -> float:
    """Return the robust standard deviation of green against the mean of its two neighbours, in grey levels."""
    green = seed.image[::4, :, 1].astype(np.int16)
    twice = np.abs(2 * green[:, 1:-1] - green[:, :-2] - green[:, 2:])[~seed.frame[::4, 1:-1]]
    if twice.size == 0:
        return 0.0
    counts = np.cumsum(np.bincount(twice))
    # Between whole numbers the median is interpolated. The difference has √6 times the noise's standard deviation.
    half = twice.size / 2
    step = int(np.searchsorted(counts, half))
    below = int(counts[step - 1]) if step else 0
    median = step - 0.5 + (half - below) / max(int(counts[step]) - below, 1)
    return max(1.4826 * float(median) / math.sqrt(6.0), 0.0)
