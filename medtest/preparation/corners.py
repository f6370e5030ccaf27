"""Fitting the cut corners of a box, and keeping those that follow a sharp edge."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from medtest.preparation.evidence import EDGE_SHIFT, WORKING_SIDE, Floats, Votes, sharp_fraction, shrink
from medtest.preparation.field_shape import MAX_BULGE, Box, Cut, Cuts

Kind = tuple[float, float]
"""Slope (height over width, in pixels) and bulge of a cut."""

SLOPES = (0.7, 0.84, 1.0, 1.19, 1.43)
"""Slopes that are tried first; 1 is the chamfer of most scopes."""

BULGES = (0.0, 0.1, 0.2, 0.3, 0.41)
"""Roundness that is tried first."""

KINDS: tuple[Kind, ...] = tuple((slope, bulge) for bulge in BULGES for slope in SLOPES)

LONGEST_CUT = 0.75
"""A cut takes at most this part of a side."""

MIN_GAIN = 1e-4
"""A cut must win at least this many black pixels, as a fraction of the image."""

MIN_SHARP = 0.5
"""Part of a cut's edge that must be sharp."""

MIN_POINTS = 6
"""Points of a cut's edge at which the field is bright enough to tell."""

COARSE = 4
"""The kind of cut is chosen on votes shrunk by this factor."""

LEVELS = 2 * WORKING_SIDE // COARSE + 2
"""Sizes of cuts that are told apart there: half pixels up to a whole side."""


@lru_cache(maxsize=24)  # 128 KiB each at most: workers live long, and their memory must stay flat
def _levels(slope: float, bulge: float, side: int) -> NDArray[np.int16]:
    """Return for each pixel from a corner the smallest cut that holds it, as its width in half pixels."""
    s = (np.arange(side) + 0.5)[None, :]
    t = (np.arange(side) + 0.5)[:, None] / slope
    total, difference = s + t, s - t
    root = np.sqrt(total**2 - 4 * bulge * (1 - bulge) * difference**2)
    levels: NDArray[np.int16] = np.ceil((total + root) / (1 - bulge)).astype(np.int16)
    return levels


@lru_cache(maxsize=8)
def _stacked_levels(height: int, width: int) -> NDArray[np.int32]:
    """Return the levels of every kind that is tried first, each moved into a range of its own: kinds×(h·w)."""
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
    """Return the votes at each corner of the box, turned so that the corner is at the origin."""
    height, width = votes.shape
    x0, y0 = round(box.left * width), round(box.top * height)
    x1, y1 = max(x0 + 1, round(box.right * width)), max(y0 + 1, round(box.bottom * height))
    inside = votes[y0:y1, x0:x1]
    down, across = (max(1, int(LONGEST_CUT * n)) for n in inside.shape)
    turned = (inside, inside[:, ::-1], inside[::-1], inside[::-1, ::-1])
    return [np.ascontiguousarray(t[:down, :across]) for t in turned]


def common_kind(votes: Votes, box: Box) -> tuple[Kind, Cuts]:
    """Return the kind of cut that serves all four corners best, and the cuts of that kind to about two pixels."""
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
    """Return the best cut at each corner among the kinds near a common one, to a fraction of a pixel."""
    height, width = votes.shape
    slope, bulge = kind
    slopes = [round(slope * factor, 4) for factor in (0.92, 1.0, 1.08)]
    bulges = sorted({max(0.0, round(bulge - 0.05, 4)), bulge, min(MAX_BULGE, round(bulge + 0.05, 4))})
    kinds = [(r, k) for k in bulges for r in slopes]
    found: list[Cut | None] = []
    for half, quadrant in zip(_quadrants(shrink(votes, 2), box), _quadrants(votes, box), strict=True):
        gains = [_best(half, r, k, WORKING_SIDE // 2)[0] for r, k in kinds]
        r, k = kinds[int(np.argmax(gains))]
        gain, across = _best(quadrant, r, k, WORKING_SIDE)
        across += EDGE_SHIFT * float(np.hypot(1.0, r)) / r
        enough = gain >= MIN_GAIN * votes.size
        found.append(Cut(across=across / width, down=across * r / height, bulge=k) if enough else None)
    return found[0], found[1], found[2], found[3]


# ---------------------------------------------------------------------------------------------------- sharp edges


def keep_sharp(votes: Votes, box: Box, cuts: Cuts) -> Cuts:
    """Return the cuts that follow a sharp edge.

    Where a lumen as black as the frame hides the edge of one corner, the cut found there is too large or shapeless; it
    gives way to one like another corner's, when that follows the edge as far as it can be seen.

    Args:
        votes: Votes, 0 on insets, whose edges say nothing about a cut.
        box: The field's box.
        cuts: The cuts as fitted.
    """
    quality = [_quality(votes, box, i, cut) if cut else (0.0, 0) for i, cut in enumerate(cuts)]
    good = [cut for cut, (sharp, count) in zip(cuts, quality, strict=True) if cut and _is_good(sharp, count)]
    kept: list[Cut | None] = []
    for index, (cut, (sharp, count)) in enumerate(zip(cuts, quality, strict=True)):
        if cut is None or _is_good(sharp, count):
            kept.append(cut)
            continue
        others = [(*_quality(votes, box, index, other), other) for other in good]
        others = [other for other in others if other[0] >= MIN_SHARP and other[1] >= MIN_POINTS // 2]
        kept.append(max(others, key=lambda other: other[0] * other[1])[2] if others else None)
    return kept[0], kept[1], kept[2], kept[3]


def _is_good(sharp: float, count: int) -> bool:
    return sharp >= MIN_SHARP and count >= MIN_POINTS


def _quality(votes: Votes, box: Box, index: int, cut: Cut) -> tuple[float, int]:
    points, inward = cut_points(box, index, cut, votes.shape)
    height, width = votes.shape
    at = np.floor(points).astype(np.intp)
    seen = (at[:, 0] >= 0) & (at[:, 0] < width) & (at[:, 1] >= 0) & (at[:, 1] < height)
    seen[seen] &= votes[at[seen, 1], at[seen, 0]] != 0
    return sharp_fraction(votes, points[seen], inward[seen])


def cut_points(box: Box, index: int, cut: Cut, size: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return points about a pixel apart on a cut's edge and the unit vectors into the field, in pixels.

    Args:
        box: The field's box, in fractions of the image's sides.
        index: Which corner, in the order of :data:`Cuts`.
        cut: What is cut off there, in the same fractions.
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
    # The gradient of s + t + k (1 - (s - t)^2), which grows into the field.
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
