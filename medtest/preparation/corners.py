"""Fitting of the cut corners of a box, keeping those that follow a sharp edge."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from medtest.preparation.evidence import EDGE_SHIFT, WORKING_SIDE, Floats, Votes, sharp_fraction, shrink
from medtest.preparation.field_shape import MAX_BULGE, Box, Cut, Cuts

Kind = tuple[float, float]
"""Slope (height over width, in pixels) and bulge of a cut."""

SLOPES = (0.7, 0.84, 1.0, 1.19, 1.43)
"""Slopes tried first; 1 is the chamfer of most endoscopes."""

BULGES = (0.0, 0.1, 0.2, 0.3, 0.41)
"""Bulges tried first."""

KINDS: tuple[Kind, ...] = tuple((slope, bulge) for bulge in BULGES for slope in SLOPES)

LONGEST_CUT = 0.75
"""Largest part of a side taken by a cut."""

MIN_GAIN = 1e-4
"""Least gain of a cut in black pixels, as a fraction of the image."""

MIN_SHARP = 0.5
"""Least part of a cut's edge that must be sharp."""

MIN_POINTS = 6
"""Least number of points on a cut's edge with a field bright enough to judge."""

COARSE = 4
"""Factor by which votes are shrunk for choosing the kind of cut."""

LEVELS = 2 * WORKING_SIDE // COARSE + 2
"""Number of distinct cut sizes there: half pixels up to a whole side."""


@lru_cache(maxsize=24)  # 128 KiB each at most: workers live long, so memory must stay bounded
def _levels(slope: float, bulge: float, side: int) -> NDArray[np.int16]:
    """Return for each pixel from a corner the smallest cut that contains it, as its width in half pixels."""
    s = (np.arange(side) + 0.5)[None, :]
    t = (np.arange(side) + 0.5)[:, None] / slope
    total, difference = s + t, s - t
    root = np.sqrt(total**2 - 4 * bulge * (1 - bulge) * difference**2)
    levels: NDArray[np.int16] = np.ceil((total + root) / (1 - bulge)).astype(np.int16)
    return levels


@lru_cache(maxsize=8)
def _stacked_levels(height: int, width: int) -> NDArray[np.int32]:
    """Return the levels of all kinds tried first, each offset into its own range: kinds×(h·w)."""
    side = WORKING_SIDE // COARSE
    stack = np.stack([_levels.__wrapped__(*kind, side)[:height, :width].reshape(-1) for kind in KINDS])
    np.minimum(stack, LEVELS - 1, out=stack)
    moved: NDArray[np.int32] = stack + LEVELS * np.arange(len(KINDS), dtype=np.int32)[:, None]
    return moved


def _best(votes: Votes, slope: float, bulge: float, side: int) -> tuple[float, float]:
    """Return the gain of the best cut of a kind at the origin of a quadrant, and its width in pixels."""
    height, width = votes.shape
    levels = _levels(slope, bulge, side)[:height, :width]
    longest = int(2 * min(width, height / slope))
    sums = np.bincount(levels.reshape(-1), weights=votes.reshape(-1))[: longest + 1].cumsum()
    index = int(sums.argmin())
    return (-float(sums[index]), index / 2) if sums[index] < 0 else (0.0, 0.0)


def _quadrants(votes: Votes, box: Box) -> list[Votes]:
    """Return the votes at each corner of the box, flipped so that the corner is at the origin."""
    height, width = votes.shape
    x0, y0 = round(box.left * width), round(box.top * height)
    x1, y1 = max(x0 + 1, round(box.right * width)), max(y0 + 1, round(box.bottom * height))
    inside = votes[y0:y1, x0:x1]
    down, across = (max(1, int(LONGEST_CUT * n)) for n in inside.shape)
    turned = (inside, inside[:, ::-1], inside[::-1], inside[::-1, ::-1])
    return [np.ascontiguousarray(t[:down, :across]) for t in turned]


def common_kind(votes: Votes, box: Box) -> tuple[Kind, Cuts]:
    """Return the kind of cut that fits all four corners best, and the cuts of that kind to about two pixels."""
    small = shrink(votes, COARSE)
    quadrants = _quadrants(small, box)
    height, width = quadrants[0].shape
    levels = _stacked_levels(height, width).reshape(-1)
    longest = np.array([int(2 * min(width, height / slope)) for slope, _ in KINDS])
    gains = np.zeros(len(KINDS))
    for quadrant in quadrants:
        weights = np.broadcast_to(quadrant.reshape(-1), (len(KINDS), quadrant.size)).reshape(-1)
        sums = np.bincount(levels, weights=weights, minlength=LEVELS * len(KINDS)).reshape(len(KINDS), LEVELS)
        sums = np.where(np.arange(LEVELS) <= longest[:, None], sums.cumsum(axis=1), 0.0)
        gains -= np.minimum(sums.min(axis=1), 0.0)
    kind = KINDS[int(np.argmax(gains))]
    cuts: list[Cut | None] = []
    for quadrant in quadrants:
        gain, across = _best(quadrant, *kind, WORKING_SIDE // COARSE)
        cut = Cut(across=across / small.shape[1], down=across * kind[0] / small.shape[0], bulge=kind[1])
        cuts.append(cut if gain > 0 else None)
    return kind, (cuts[0], cuts[1], cuts[2], cuts[3])


def fit_cuts(votes: Votes, box: Box, kind: Kind) -> Cuts:
    """Return the best cut at each corner among kinds near a common one, to a fraction of a pixel."""
    height, width = votes.shape
    slope, bulge = kind
    slopes = [round(slope * factor, 4) for factor in (0.92, 1.0, 1.08)]
    bulges = sorted({max(0.0, round(bulge - 0.05, 4)), bulge, min(MAX_BULGE, round(bulge + 0.05, 4))})
    kinds = [(r, k) for k in bulges for r in slopes]
    cuts: list[Cut | None] = []
    for half, quadrant in zip(_quadrants(shrink(votes, 2), box), _quadrants(votes, box), strict=True):
        gains = [_best(half, r, k, WORKING_SIDE // 2)[0] for r, k in kinds]
        r, k = kinds[int(np.argmax(gains))]
        gain, across = _best(quadrant, r, k, WORKING_SIDE)
        across += EDGE_SHIFT * float(np.hypot(1.0, r)) / r
        enough = gain >= MIN_GAIN * votes.size
        cuts.append(Cut(across=across / width, down=across * r / height, bulge=k) if enough else None)
    return cuts[0], cuts[1], cuts[2], cuts[3]


# ---------------------------------------------------------------------------------------------------- sharp edges


def keep_sharp(votes: Votes, box: Box, cuts: Cuts) -> Cuts:
    """Return the cuts that follow a sharp edge.

    If a lumen as black as the frame hides the edge of one corner, the cut fitted there is too large or shapeless; it is
    replaced by one like another corner's, if that follows the visible part of the edge.

    Args:
        votes: Votes, 0 on insets, whose edges are not evidence of a cut.
        box: The field's box.
        cuts: The cuts as fitted.
    """
    quality = [_quality(votes, box, i, cut) if cut else (0.0, 0) for i, cut in enumerate(cuts)]
    good = [cut for cut, (sharp, count) in zip(cuts, quality, strict=True) if cut and _is_good(sharp, count)]
    sharp_cuts: list[Cut | None] = []
    for index, (cut, (sharp, count)) in enumerate(zip(cuts, quality, strict=True)):
        if cut is None or _is_good(sharp, count):
            sharp_cuts.append(cut)
            continue
        others = [(*_quality(votes, box, index, other), other) for other in good]
        others = [other for other in others if other[0] >= MIN_SHARP and other[1] >= MIN_POINTS // 2]
        sharp_cuts.append(max(others, key=lambda other: other[0] * other[1])[2] if others else None)
    return sharp_cuts[0], sharp_cuts[1], sharp_cuts[2], sharp_cuts[3]


def _is_good(sharp: float, count: int) -> bool:
    return sharp >= MIN_SHARP and count >= MIN_POINTS


def _quality(votes: Votes, box: Box, index: int, cut: Cut) -> tuple[float, int]:
    points, inward = cut_points(box, index, cut, votes.shape)
    height, width = votes.shape
    at = np.floor(points).astype(np.intp)
    visible = (at[:, 0] >= 0) & (at[:, 0] < width) & (at[:, 1] >= 0) & (at[:, 1] < height)
    visible[visible] &= votes[at[visible, 1], at[visible, 0]] != 0
    return sharp_fraction(votes, points[visible], inward[visible])


def cut_points(box: Box, index: int, cut: Cut, size: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return points about a pixel apart on a cut's edge and the unit vectors into the field, in pixels.

    Args:
        box: The field's box, in fractions of the image's sides.
        index: Index of the corner, in the order of :data:`Cuts`.
        cut: The cut at this corner, in the same fractions.
        size: Height and width of the image in pixels.

    Returns:
        Points (x, y) and vectors (x, y), float64 n×2 each, n at least 4.
    """
    height, width = size
    k = cut.bulge
    steps = max(4, round(np.hypot(cut.across * width, cut.down * height)))
    difference = np.linspace(1, -1, steps)
    total = 1 - k * (1 - difference**2)
    x = (total + difference) / 2 * cut.across * width
    y = (total - difference) / 2 * cut.down * height
    # The gradient of s + t + k (1 - (s - t)^2), which increases into the field.
    normal = np.column_stack(
        [(1 - 2 * k * difference) / (cut.across * width), (1 + 2 * k * difference) / (cut.down * height)]
    )
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    if index % 2:
        x, normal[:, 0] = box.right * width - x, -normal[:, 0]
    else:
        x = box.left * width + x
    if index >= 2:
        y, normal[:, 1] = box.bottom * height - y, -normal[:, 1]
    else:
        y = box.top * height + y
    return np.column_stack([x, y]), normal
