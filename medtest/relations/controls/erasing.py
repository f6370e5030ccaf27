"""Erasing of a region: it is replaced by tissue of the same image.

A part of the image of the same shape, possibly mirrored, is chosen where it looks most like a smooth continuation of
the region's surroundings. It is added to the harmonic interpolation of its difference from the surroundings, which is
Poisson cloning (P. Pérez, M. Gangnet, A. Blake, ACM Transactions on Graphics 22, 2003). Where no part of the image
covers the region, the fine detail of several is added to the interpolation instead. Letters and highlights are not
copied. All sums are of elements in one order, so that bytes do not depend on the processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.core.portable import portable_opencv

Floats: TypeAlias = NDArray[np.float64]
Place: TypeAlias = tuple[int, int, int, int]
"""Shift in rows and columns, then 1 or -1 (mirrored) for rows and columns."""

LARGEST = 0.2
"""Largest share of the field that may be erased; beyond it too little tissue is left to replace it."""
WIDENED = 0.025
"""Margin around the region that is erased as well, as fraction of the image's height: its shadow and rim."""

_FEATHER = 0.01
"""Width of the soft rim of what is filled in, as fraction of the image's height; less than the margin."""
_TURNS = 24
_REACHES = (0.6, 0.8, 1.0, 1.25, 1.5, 1.8, 2.2)
_MIRRORS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_SAMPLED = 300
_PARTS = 5
_CONTRAST = 40.0
"""Largest detail that is copied, in levels of 255."""
_DETAIL = 0.016
"""Standard deviation of the blur that separates detail from shade, as fraction of the image's height."""
_SWEEPS = 16
_RIM = 4


def too_large(region: Mask, frame: Mask) -> bool:
    """Return True if a region covers more than :data:`LARGEST` of the field."""
    return int(np.count_nonzero(region)) > LARGEST * max(1, int(np.count_nonzero(~frame)))


def erase(image: Image, region: Mask, frame: Mask, turn: float, *, never: Mask | None = None) -> Image | None:
    """Return the image with a region replaced by tissue, or None if there is no region or not enough tissue.

    Args:
        image: uint8 H×W×3 RGB.
        region: bool H×W, at most :data:`LARGEST` of the field.
        frame: bool H×W, the black frame, which is left alone and gives no tissue.
        turn: First direction in which tissue is looked for, in turns.
        never: bool H×W, a further region that gives no tissue; None for none.
    """
    if not region.any() or too_large(region, frame):
        return None
    with portable_opencv():
        return _erased(image, region, frame, turn, never)


def _erased(image: Image, region: Mask, frame: Mask, turn: float, never: Mask | None) -> Image | None:
    height = image.shape[0]
    hole = widened(region, max(3, round(WIDENED * height))) & ~frame
    tissue = ~widened(frame, max(2, round(_FEATHER * height))) & ~widened(hole, _RIM)
    if never is not None:
        tissue &= ~widened(never, max(3, round(WIDENED * height)))
    if not tissue.any():
        return None
    window = _around(hole, 2 * _RIM + 8)
    donor = _without_glints(image)
    smooth = _blurred(donor, ~frame & ~hole, max(1.0, 0.004 * height))[window]
    shade = _continued(smooth, _rim(hole, frame)[window], hole[window])
    layer = _layer(donor, hole, tissue, frame, shade, window, turn)
    return _cloned(image, layer, smooth, hole, frame, window)


def paste(image: Image, donor: Image, region: Mask, shift: tuple[int, int], frame: Mask) -> Image:
    """Return the image with a region of another one, cloned so that its surroundings fit.

    Args:
        image: uint8 H×W×3 RGB.
        donor: uint8 H'×W'×3 RGB.
        region: bool H'×W', what is copied, with its margin; moved by ``shift`` it must lie inside the field.
        shift: Rows and columns by which it is moved.
        frame: bool H×W, the black frame of the image.
    """
    with portable_opencv():
        height = image.shape[0]
        hole = moved_region(region, shift, image.shape[:2])
        window = _around(hole, 2 * _RIM + 8)
        rows, columns = (np.arange(part.start, part.stop) - by for part, by in zip(window, shift, strict=True))
        rows, columns = (np.clip(at, 0, side - 1) for at, side in zip((rows, columns), donor.shape, strict=False))
        layer = donor[np.ix_(rows, columns)].astype(np.float64)
        smooth = _blurred(_without_glints(image), ~frame & ~hole, max(1.0, 0.004 * height))[window]
        return _cloned(image, layer, smooth, hole, frame, window)


def moved_region(region: Mask, shift: tuple[int, int], shape: tuple[int, ...]) -> Mask:
    """Return a mask moved by whole pixels into a picture of another shape; what leaves it is lost.

    Args:
        region: bool H'×W'.
        shift: Rows and columns.
        shape: Rows and columns of the result.
    """
    moved = np.zeros(shape[:2], bool)
    rows, columns = np.nonzero(region)
    rows, columns = rows + shift[0], columns + shift[1]
    inside = (rows >= 0) & (rows < shape[0]) & (columns >= 0) & (columns < shape[1])
    moved[rows[inside], columns[inside]] = True
    return moved


def _rim(hole: Mask, frame: Mask) -> Mask:
    return widened(hole, _RIM) & ~hole & ~frame


def _cloned(image: Image, layer: Floats, smooth: Floats, hole: Mask, frame: Mask, window: tuple[slice, slice]) -> Image:
    """Return the image with a layer in a hole, whose difference from the surroundings is evened out.

    Args:
        image: uint8 H×W×3.
        layer: float64, of the window's shape × 3, valid in the hole and on its rim.
        smooth: float64, the smooth image of the same shape.
        hole: bool H×W.
        frame: bool H×W.
        window: Rows and columns around the hole.
    """
    height = image.shape[0]
    valued = _rim(hole, frame)[window]
    gap = _continued(smooth - _rim_of(layer, valued, height), valued, hole[window])
    filled = np.clip(layer + gap, 0.0, 255.0)
    keep = _softened(hole, frame, max(2, round(_FEATHER * height)))[window][..., None]
    done = image.copy()
    done[window] = np.rint(image[window] * (1.0 - keep) + filled * keep).astype(np.uint8)
    return done


def _softened(hole: Mask, frame: Mask, feather: int) -> Floats:
    """Return the opacity of what fills a hole, float64 H×W: 1 but for a soft rim inside it, 0 outside."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * feather + 1, 2 * feather + 1))
    core = cv2.erode((hole | frame).astype(np.uint8) * 255, kernel)
    return cv2.GaussianBlur(core, (0, 0), feather / 2.0).astype(np.float64) / 255.0 * hole


def widened(mask: Mask, radius: int) -> Mask:
    """Return a mask dilated by a disc.

    Args:
        mask: bool H×W.
        radius: In pixels.
    """
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    return cv2.dilate(mask.astype(np.uint8), kernel).astype(bool)


def _around(mask: Mask, margin: int) -> tuple[slice, slice]:
    left, top, width, height = cv2.boundingRect(mask.astype(np.uint8))
    rows = slice(max(0, top - margin), min(mask.shape[0], top + height + margin))
    return rows, slice(max(0, left - margin), min(mask.shape[1], left + width + margin))


def _without_glints(image: Image) -> Image:
    """Return the image with letters and highlights (small, bright, pale) replaced by their surroundings."""
    side = max(5, image.shape[0] // 24) | 1
    pale = image.min(axis=2)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
    glints = cv2.morphologyEx(pale, cv2.MORPH_TOPHAT, kernel) > 40
    glints = widened(glints, max(2, image.shape[0] // 170))
    around = cv2.medianBlur(np.ascontiguousarray(image), min(2 * side + 1, 255))
    return np.where(glints[..., None], around, image)


def _blurred(image: Image, where: Mask, sigma: float) -> Floats:
    """Return the image blurred with the pixels of a mask alone, float64 H×W×3."""
    weight = cv2.GaussianBlur(where.astype(np.uint8) * 255, (0, 0), sigma).astype(np.float64)
    total = cv2.GaussianBlur(image * where[..., None].astype(np.uint8), (0, 0), sigma).astype(np.float64)
    return np.where(weight[..., None] > 8, total * 255.0 / np.maximum(weight, 1.0)[..., None], image)


def _continued(values: Floats, valued: Mask, hole: Mask) -> Floats:
    """Return values continued harmonically into a hole (Laplace's equation), coarse to fine.

    Args:
        values: float64 H×W×3.
        valued: bool H×W, where values are given.
        hole: bool H×W, where they are sought; other pixels are left out.
    """
    result = np.where(valued[..., None], values, 0.0)
    if min(hole.shape) > 24:
        small_values, small_known, small_hole = _halved(result, valued, hole)
        coarse = _continued(small_values, small_known, small_hole)
        rows, columns = (np.arange(side) // 2 for side in hole.shape)
        fine = coarse[np.minimum(rows, coarse.shape[0] - 1)][:, np.minimum(columns, coarse.shape[1] - 1)]
        sweeps = _SWEEPS
    else:
        fine = np.broadcast_to(_mean_of(result, valued), result.shape)
        sweeps = 20 * _SWEEPS
    result = np.where(hole[..., None], fine, result)
    padded = np.pad(result, ((1, 1), (1, 1), (0, 0)))
    width = padded.shape[1]
    at = np.flatnonzero(np.pad(hole, 1))
    beside = [at - width, at + width, at - 1, at + 1]
    flat = padded.reshape(-1, padded.shape[2])  # zero where nothing is known
    valid = np.pad(valued | hole, 1).reshape(-1).astype(np.float64)
    count = np.maximum(valid[beside[0]] + valid[beside[1]] + valid[beside[2]] + valid[beside[3]], 1.0)[:, None]
    for _ in range(sweeps):
        flat[at] = (flat[beside[0]] + flat[beside[1]] + flat[beside[2]] + flat[beside[3]]) / count
    return padded[1:-1, 1:-1]


def _mean_of(values: Floats, where: Mask) -> Floats:
    """Return the mean of each channel, float64 3, by exact sums of whole numbers."""
    chosen = np.rint(values[where] * 64.0)
    return np.asarray(chosen.sum(axis=0) / 64.0 / max(1, len(chosen)), np.float64)


def _halved(values: Floats, valued: Mask, hole: Mask) -> tuple[Floats, Mask, Mask]:
    """Return values and masks at half the size; a pixel has a value if any of its four is."""
    pad = tuple((0, side % 2) for side in hole.shape)
    v, k, h = np.pad(values, (*pad, (0, 0))), np.pad(valued, pad), np.pad(hole, pad)
    corners = [(slice(down, None, 2), slice(right, None, 2)) for down in (0, 1) for right in (0, 1)]
    weight = np.zeros(k[corners[0]].shape)
    total = np.zeros((*weight.shape, 3))
    inside = np.zeros(weight.shape, bool)
    for corner in corners:
        weight = weight + k[corner]
        total = total + v[corner] * k[corner][..., None]
        inside |= h[corner]
    return total / np.maximum(weight, 1.0)[..., None], weight > 0, inside & (weight == 0)


def _rim_of(layer: Floats, valued: Mask, height: int) -> Floats:
    """Return the layer smoothed as the surroundings are, for the rim; it holds colours, or detail around 0."""
    half = np.clip(np.rint((layer + 128.0) / 1.5), 0, 255).astype(np.uint8)
    lower = cv2.GaussianBlur(half, (0, 0), max(1.0, 0.004 * height)).astype(np.float64) * 1.5 - 128.0
    return np.where(valued[..., None], lower, layer)


def _layer(
    donor: Image, hole: Mask, tissue: Mask, frame: Mask, shade: Floats, window: tuple[slice, slice], turn: float
) -> Floats:
    """Return the texture for the hole and its rim, float64 of the window's shape × 3.

    It is the best matching part of the image, or if none covers the hole, the detail of the best ones.
    """
    rim = widened(hole, _RIM)[window] & ~frame[window]
    rows, columns = (values + start.start for values, start in zip(np.nonzero(rim), window, strict=True))
    target = shade[rim]
    inside = hole[window][rim]
    step = max(1, len(rows) // _SAMPLED)
    picked = np.flatnonzero(inside)[::step]
    ranked = sorted(_candidates(donor, tissue, rows, columns, target, picked, turn), key=lambda candidate: candidate[0])
    layer = np.zeros((*rim.shape, 3))
    filled = np.zeros(len(rows), bool)
    texture = np.zeros((len(rows), 3))
    whole = [place for cost, place, covered in ranked if covered]
    if whole:
        r, c = _moved(rows, columns, whole[0])
        r, c = np.clip(r, 0, hole.shape[0] - 1), np.clip(c, 0, hole.shape[1] - 1)
        usable = ~frame[r, c]
        texture[usable] = donor[r, c][usable]
        texture[~usable] = target[~usable]
    else:
        lower = _blurred(donor, tissue, max(2.0, _DETAIL * hole.shape[0]))
        for _, place, _ in ranked[:_PARTS]:
            r, c = _moved(rows, columns, place)
            fits = (r >= 0) & (r < hole.shape[0]) & (c >= 0) & (c < hole.shape[1]) & ~filled
            fits[fits] = tissue[r[fits], c[fits]]
            texture[fits] = np.clip(donor[r[fits], c[fits]] - lower[r[fits], c[fits]], -_CONTRAST, _CONTRAST)
            filled |= fits
    layer[rim] = texture
    return layer


def _candidates(
    donor: Image,
    tissue: Mask,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    target: Floats,
    picked: NDArray[np.int64],
    turn: float,
) -> Iterator[tuple[float, Place, bool]]:
    """Yield the cost of each place tissue may come from, and whether it covers all of the hole."""
    extent = max(int(np.ptp(rows)), int(np.ptp(columns))) + 2
    target_shade = np.rint(target[picked]).astype(np.int64)
    for place in _places(extent, turn):
        r, c = _moved(rows[picked], columns[picked], place, rows, columns)
        fits = (r >= 0) & (r < tissue.shape[0]) & (c >= 0) & (c < tissue.shape[1])
        fits[fits] = tissue[r[fits], c[fits]]
        count = int(np.count_nonzero(fits))
        if count < len(picked) // 4:
            continue
        unlike = int(np.abs(donor[r[fits], c[fits]].astype(np.int64) - target_shade[fits]).sum()) / (3 * count)
        covers = count == len(picked) and _covers(tissue, rows, columns, place)
        yield unlike + 60.0 * (1.0 - count / len(picked)), place, covers


def _covers(tissue: Mask, rows: NDArray[np.int64], columns: NDArray[np.int64], place: Place) -> bool:
    r, c = _moved(rows, columns, place)
    inside = (r >= 0) & (r < tissue.shape[0]) & (c >= 0) & (c < tissue.shape[1])
    inside[inside] = tissue[r[inside], c[inside]]
    return bool(inside.all())


def _places(extent: int, turn: float) -> Iterator[Place]:
    for number in range(_TURNS):
        angle = 2.0 * np.pi * (number / _TURNS + turn)
        for reach in _REACHES:
            down, right = round(extent * reach * np.sin(angle)), round(extent * reach * np.cos(angle))
            for mirror in _MIRRORS:
                yield down, right, *mirror


def _moved(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    place: Place,
    all_rows: NDArray[np.int64] | None = None,
    all_columns: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pixels that a place maps to, mirrored about the middle of the region."""
    down, right, flip_rows, flip_columns = place
    every = rows if all_rows is None else all_rows, columns if all_columns is None else all_columns
    ends = [int(values.min()) + int(values.max()) for values in every]
    r = rows if flip_rows > 0 else ends[0] - rows
    c = columns if flip_columns > 0 else ends[1] - columns
    return r + down, c + right
