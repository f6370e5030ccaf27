"""Fitting the shapes to the votes: bounding box, cut corners, ellipse.

Lengths are pixels of the small copy here; :class:`FieldShape` gets fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.preparation.evidence import Evidence, Floats, Votes, sharp_fraction
from medtest.preparation.field_shape import Box, Cut, Ellipse, FieldShape

SLOPES = (0.7, 0.84, 1.0, 1.19, 1.43)
"""Height over width of a cut corner that is tried first; 1 is the chamfer of most scopes."""

BULGES = (0.0, 0.1, 0.2, 0.3, 0.41)
"""Roundness of a cut corner that is tried first."""

LONGEST_CUT = 0.75
"""A cut takes at most this part of a side."""

MIN_GAIN = 1e-4
"""A cut corner must win at least this many black pixels, as a fraction of the image."""

MIN_SHARP = 0.5
"""Part of a fitted edge that must be sharp in the image."""

Cuts = tuple[Cut | None, Cut | None, Cut | None, Cut | None]
NO_CUTS: Cuts = (None, None, None, None)


class Score:
    """Sums of votes inside shapes, from sums along rows."""

    def __init__(self, votes: Votes) -> None:
        self.height, self.width = votes.shape
        self._sums = np.zeros((self.height, self.width + 1))
        np.cumsum(votes, axis=1, out=self._sums[:, 1:])
        self._rows = np.arange(self.height)
        self.y = (self._rows + 0.5) / self.height

    def of(self, shape: FieldShape) -> float:
        """Return the votes inside a shape."""
        left, right = shape.spans(self.y)
        return float(self.between(left * self.width, right * self.width))

    def between(self, left: Floats, right: Floats) -> Floats:
        """Return the votes between two ends of each row, …×h arrays in pixels; an empty row counts nothing."""
        left, right = np.clip(left, 0, self.width), np.clip(right, 0, self.width)
        inside = right > left
        total: Floats = np.where(inside, self._at(right) - self._at(left), 0.0).sum(axis=-1)
        return total

    def _at(self, x: Floats) -> Floats:
        whole = np.minimum(x.astype(np.intp), self.width - 1)
        first = self._sums[self._rows, whole]
        value: Floats = first + (x - whole) * (self._sums[self._rows, whole + 1] - first)
        return value


# ------------------------------------------------------------------------------------------------------------- box


def first_box(votes: Votes) -> Box | None:
    """Return the bounding box, in fractions, of the largest bright region after removal of thin things (text)."""
    height, width = votes.shape
    bright = (votes > 0).astype(np.uint8)
    opened = cv2.morphologyEx(
        bright, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8), borderType=cv2.BORDER_REPLICATE
    )
    count, _, stats, _ = cv2.connectedComponentsWithStats(opened, connectivity=4)
    if count < 2:
        return None
    left, top, across, down, _ = stats[1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))]
    return Box(left=left / width, top=top / height, right=(left + across) / width, bottom=(top + down) / height)


def refine_box(evidence: Evidence, votes: Votes, box: Box, cuts: Cuts) -> Box:
    """Move each side of the box to where the votes along its straight part say, to a fraction of a pixel."""
    height, width = votes.shape
    top_left, top_right, bottom_left, bottom_right = cuts

    def rows(above: Cut | None, below: Cut | None) -> tuple[int, int]:
        first = box.top + (above.down if above else 0.0)
        last = box.bottom - (below.down if below else 0.0)
        return int(np.ceil(first * height)) + 1, int(last * height) - 1

    def columns(left: Cut | None, right: Cut | None) -> tuple[int, int]:
        first = box.left + (left.across if left else 0.0)
        last = box.right - (right.across if right else 0.0)
        return int(np.ceil(first * width)) + 1, int(last * width) - 1

    def side(part: tuple[int, int], axis: int, end: bool, now: float) -> float:
        first, last = part
        if last - first < 8:
            return now
        band = votes[first:last] if axis == 1 else votes[:, first:last].T
        light = evidence.light[first:last] if axis == 1 else evidence.light[:, first:last].T
        if end:
            band, light = band[:, ::-1], light[:, ::-1]
        size = band.shape[1]
        here = (1 - now if end else now) * size
        found = _edge(band, light, here)
        return 1 - found / size if end else found / size

    return Box(
        left=side(rows(top_left, bottom_left), 1, False, box.left),
        right=side(rows(top_right, bottom_right), 1, True, box.right),
        top=side(columns(top_left, top_right), 0, False, box.top),
        bottom=side(columns(bottom_left, bottom_right), 0, True, box.bottom),
    )


def _edge(band: Votes, light: NDArray[np.uint8], now: float) -> float:
    """Return where the field begins along axis 1 of a band, at most half of its length from its start."""
    size = band.shape[1]
    limit = max(1, min(size // 2, int(now) + size // 6))
    sums = np.concatenate([[0.0], np.cumsum(band[:, :limit].mean(axis=0))])
    start = int(np.argmin(sums))
    if start == 0:
        return 0.0
    # The pixel before `start` is black for the votes; what light it has is the covered part of it.
    inside = np.median(light[:, min(start + 1, size - 1)].astype(float))
    border = np.median(light[:, start - 1].astype(float))
    outside = np.median(light[:, max(0, start - 3)].astype(float))
    first = np.median(light[:, start].astype(float))
    if inside <= outside:
        return float(start)
    covered = np.clip((np.array([border, first]) - outside) / (inside - outside), 0, 1)
    return float(start + 1 - covered.sum())


# --------------------------------------------------------------------------------------------------------- corners


@lru_cache(maxsize=256)
def _levels(slope: float, bulge: float, side: int) -> NDArray[np.intp]:
    """Return for each pixel from a corner the index of the smallest cut (``across`` in half pixels) that holds it."""
    s = (np.arange(side) + 0.5)[None, :]
    t = (np.arange(side) + 0.5)[:, None] / slope
    total, difference = s + t, s - t
    root = np.sqrt(total**2 - 4 * bulge * (1 - bulge) * difference**2)
    levels: NDArray[np.intp] = np.ceil((total + root) / (1 - bulge)).astype(np.intp)
    return levels


@dataclass(frozen=True, slots=True)
class _Quadrant:
    """The votes near one corner of the box, turned so that the corner is at the origin."""

    votes: Votes

    def best(self, slope: float, bulge: float) -> tuple[float, float]:
        """Return the gain of the best cut of a kind and its ``across`` in pixels."""
        height, width = self.votes.shape
        side = 128 if max(height, width) <= 128 else 256
        levels = _levels(slope, bulge, side)[:height, :width]
        longest = int(2 * min(width, height / slope))
        sums = np.cumsum(np.bincount(levels.ravel(), weights=self.votes.ravel())[: longest + 1])
        index = int(np.argmin(sums)) if len(sums) else 0
        return (-float(sums[index]), index / 2) if len(sums) and sums[index] < 0 else (0.0, 0.0)


def _quadrants(votes: Votes, box: Box) -> list[_Quadrant]:
    height, width = votes.shape
    x0, x1 = round(box.left * width), round(box.right * width)
    y0, y1 = round(box.top * height), round(box.bottom * height)
    inside = votes[y0:y1, x0:x1]
    down, across = (max(1, int(LONGEST_CUT * n)) for n in inside.shape)
    turned = (inside, inside[:, ::-1], inside[::-1], inside[::-1, ::-1])
    return [_Quadrant(np.ascontiguousarray(t[:down, :across])) for t in turned]


def fit_cuts(votes: Votes, box: Box) -> Cuts:
    """Return the cut corners of a box: one kind (slope, roundness) for all first, then each for itself near it."""
    height, width = votes.shape
    half = cv2.resize(votes, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    small = _quadrants(half, box)
    kinds = [(slope, bulge) for bulge in BULGES for slope in SLOPES]
    gains = [sum(quadrant.best(*kind)[0] for quadrant in small) for kind in kinds]
    kind = kinds[int(np.argmax(gains))]
    return _own_cuts(_quadrants(votes, box), kind, votes.shape, box)


def _own_cuts(quadrants: list[_Quadrant], kind: tuple[float, float], size: tuple[int, ...], box: Box) -> Cuts:
    height, width = size
    slope, bulge = kind
    found: list[Cut | None] = []
    for quadrant in quadrants:
        best = (0.0, 0.0, slope, bulge)
        for k in sorted({max(0.0, bulge - 0.05), bulge, min(0.45, bulge + 0.05)}):
            for r in (slope * 0.92, slope, slope * 1.08):
                gain, across = quadrant.best(round(r, 4), round(k, 4))
                best = max(best, (gain, across, r, k))
        gain, across, r, k = best
        if gain < MIN_GAIN * height * width:
            found.append(None)
        else:
            found.append(Cut(across=across / width, down=across * r / height, bulge=k))
    return found[0], found[1], found[2], found[3]


# --------------------------------------------------------------------------------------------------------- ellipse


def fit_ellipse(score: Score, box: Box, shape: FieldShape) -> FieldShape:
    """Return the best ellipse (a circle first) met by the image's rectangle, by pattern search from several starts."""
    height, width = score.height, score.width
    y = np.arange(height) + 0.5

    def spans(p: Floats) -> tuple[Floats, Floats]:
        cx, cy, rx, ry = (p[:, i : i + 1] for i in range(4))
        inside = 1 - np.square((y[None] - cy) / ry)
        half = np.where(inside >= 0, rx * np.sqrt(np.maximum(inside, 0)), -1e4)
        return cx - half, cx + half

    x0, x1 = box.left * width, box.right * width
    y0, y1 = box.top * height, box.bottom * height

    def value(p: Floats) -> Floats:
        left, right = spans(p)
        left, right = np.maximum(left, x0), np.minimum(right, x1)
        right = np.where((y >= y0) & (y <= y1), right, -1.0)
        return score.between(left, right)

    cx, cy = (x0 + x1) / 2, (y0 + y1) / 2
    w, h = x1 - x0, y1 - y0
    radii = np.linspace(min(w, h) / 2, np.hypot(w, h) / 2, 9)
    shifts = np.linspace(-0.2, 0.2, 5)
    starts = np.array([[cx + a * w, cy + b * h, r, r] for r in radii for a in shifts for b in shifts])
    values = value(starts)
    best, top = starts[int(np.argmax(values))], float(values.max())
    moves = np.array(
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 1], [1, 0, -1, -1], [0, 1, 1, 1], [0, 1, -1, -1], [0, 0, 1, 0], [0, 0, 0, 1]],
        float,
    )
    moves = np.concatenate([moves, -moves])
    step = 8.0
    while step > 0.2:
        tried = best + step * moves
        tried[:, 2:] = np.maximum(tried[:, 2:], 4)
        values = value(tried)
        index = int(np.argmax(values))
        if values[index] > top + 1e-9:
            best, top = tried[index], float(values[index])
        else:
            step /= 2
    ellipse = Ellipse(x=best[0] / width, y=best[1] / height, across=best[2] / width, down=best[3] / height)
    return FieldShape(box=box, ellipse=ellipse)
