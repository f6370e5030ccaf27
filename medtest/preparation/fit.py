"""Fitting of a bounding box and an ellipse to the votes, and scoring of shapes.

Lengths are pixels of the small copy; :class:`FieldShape` uses fractions.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import each
from medtest.preparation.evidence import DARK_VOTE, EDGE_SHIFT, Evidence, Floats, Votes, sharp_fraction, shrink
from medtest.preparation.field_shape import Box, Cuts, Ellipse, FieldShape

SLACK = 8
"""Largest movement in pixels of a box side from the extent of the bright region."""


SHORTEST_SIDE = 12
"""Least pixels of a straight side for judging it."""

MIN_SHARP = 0.4
"""Least part of a side that must be sharp."""

LEAST_ARC = 10
"""Least points of an ellipse, of 240, with a field bright enough to judge."""


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
        """Return the votes between two ends of each row, …×h arrays in pixels; empty rows count zero."""
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


def without_thin(votes: Votes) -> Votes:
    """Return the votes with bright things thinner than 5 pixels of the small copy (text, lines) counted as black.

    The edge of a field is unchanged, because a square fits into every corner wider than 90°.
    """
    bright = (votes > 0).astype(np.uint8)
    opened = cv2.morphologyEx(bright, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8), borderType=cv2.BORDER_REPLICATE)
    rest: Votes = votes.copy()
    rest[bright != opened] = -DARK_VOTE
    return rest


def first_box(votes: Votes) -> Box | None:
    """Return the bounding box, in fractions, of the largest region voting for field; None without any."""
    height, width = votes.shape
    count, _, stats, _ = cv2.connectedComponentsWithStats((votes > 0).astype(np.uint8), connectivity=4)
    if count < 2:
        return None
    left, top, across, down, _ = stats[1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))]
    return Box(left=left / width, top=top / height, right=(left + across) / width, bottom=(top + down) / height)


def straight_parts(
    box: Box, cuts: Cuts, size: tuple[int, int]
) -> tuple[tuple[tuple[int, int], tuple[int, int]], tuple[tuple[int, int], tuple[int, int]]]:
    """Return the pixels of each side between the cuts: rows of left and right, columns of top and bottom."""
    height, width = size

    def part(first: float, last: float, length: int) -> tuple[int, int]:
        return int(np.ceil(first * length)) + 1, int(last * length) - 1

    down = [cut.down if cut else 0.0 for cut in cuts]
    across = [cut.across if cut else 0.0 for cut in cuts]
    rows = [part(box.top + down[i], box.bottom - down[i + 2], height) for i in (0, 1)]
    columns = [part(box.left + across[i], box.right - across[i + 1], width) for i in (0, 2)]
    return (rows[0], rows[1]), (columns[0], columns[1])


def open_sides(votes: Votes, box: Box, cuts: Cuts) -> Box:
    """Return the box with sides without a sharp edge, as at a dark lumen, moved to the image's border."""
    height, width = votes.shape
    rows, columns = straight_parts(box, cuts, (height, width))

    def is_edge(part: tuple[int, int], at: float, inward: tuple[float, float]) -> bool:
        along = np.arange(*part) + 0.5
        if len(along) < SHORTEST_SIDE:
            return True
        across = np.full(along.shape, at)
        points = np.column_stack([across, along] if inward[0] else [along, across])
        sharp, count = sharp_fraction(votes, points, np.array(inward))
        return count < SHORTEST_SIDE / 2 or sharp >= MIN_SHARP

    return Box(
        left=box.left if is_edge(rows[0], box.left * width, (1, 0)) else 0.0,
        right=box.right if is_edge(rows[1], box.right * width, (-1, 0)) else 1.0,
        top=box.top if is_edge(columns[0], box.top * height, (0, 1)) else 0.0,
        bottom=box.bottom if is_edge(columns[1], box.bottom * height, (0, -1)) else 1.0,
    )


def refine_box(evidence: Evidence, votes: Votes, box: Box, cuts: Cuts) -> Box:
    """Move each side of the box to the edge along its straight part, to a fraction of a pixel."""
    height, width = votes.shape
    rows, columns = straight_parts(box, cuts, (height, width))

    def side(part: tuple[int, int], axis: int, end: bool, now: float) -> float:
        first, last = part
        if last - first < 8:
            return now
        band = votes[first:last] if axis == 1 else votes[:, first:last].T
        light = evidence.light[first:last] if axis == 1 else evidence.light[:, first:last].T
        if end:
            band, light = band[:, ::-1], light[:, ::-1]
        size = int(band.shape[1])
        position = (1 - now if end else now) * size
        edge = float(_edge(band, light, position))
        return 1 - edge / size if end else edge / size

    return Box(
        left=side(rows[0], 1, False, box.left),
        right=side(rows[1], 1, True, box.right),
        top=side(columns[0], 0, False, box.top),
        bottom=side(columns[1], 0, True, box.bottom),
    )


def _edge(band: Votes, light: NDArray[np.uint8], now: float) -> float:
    """Return the start of the field along axis 1 of a band, near the previous estimate."""
    size = band.shape[1]
    first = max(0, round(now) - SLACK)
    sums = np.cumsum(band[:, first : round(now) + SLACK].mean(axis=0))
    start = first + (int(np.argmin(sums)) + 1 if sums.min() < 0 else 0)
    if start == 0:
        return 0.0
    # The pixel before `start` votes for frame; its light gives the covered part of it.
    inside = np.median(light[:, min(start + 1, size - 1)].astype(float))
    border = np.median(light[:, start - 1].astype(float))
    outside = np.median(light[:, max(0, start - 3)].astype(float))
    begin = np.median(light[:, start].astype(float))
    if inside <= outside:
        return float(start)
    covered = np.clip((np.array([border, begin]) - outside) / (inside - outside), 0, 1)
    return start + 1 - float(covered.sum())


# --------------------------------------------------------------------------------------------------------- ellipse

_MOVES = np.array(
    [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 1, 1],
        [1, 0, -1, -1],
        [0, 1, 1, 1],
        [0, 1, -1, -1],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ],
    dtype=np.float64,
)
"""Directions of the pattern search: centre, radius, both with one edge fixed, one axis only."""


def fit_ellipse(votes: Votes, box: Box) -> FieldShape:
    """Return the ellipse within the box with the most votes: circles on a coarse grid, then a pattern search."""
    height, width = votes.shape
    left, right = box.left * width, box.right * width
    top, bottom = box.top * height, box.bottom * height
    across, down = right - left, bottom - top
    radii = np.linspace(min(across, down) / 2, np.hypot(across, down) / 2, 8)
    shifts = np.linspace(-0.2, 0.2, 5)
    starts = np.array(
        [
            [(left + right) / 2 + a * across, (top + bottom) / 2 + b * down, r, r]
            for r in radii
            for a in shifts
            for b in shifts
        ]
    )
    best = starts[int(np.argmax(_ellipse_votes(Score(shrink(votes, 4)), box, starts, (height, width))))]
    score = Score(votes)
    most = -np.inf
    moves = np.concatenate([np.zeros((1, 4)), _MOVES, -_MOVES])
    step = 6.0
    while step > 0.2:
        tried = np.maximum(best + step * moves, [-1e9, -1e9, 4, 4])
        values = _ellipse_votes(score, box, tried, (height, width))
        index = int(np.argmax(values))
        if values[index] > most + 1e-9:
            best, most = tried[index], float(values[index])
        else:
            step /= 2
    across, down = best[2] - EDGE_SHIFT, best[3] - EDGE_SHIFT
    ellipse = Ellipse(x=best[0] / width, y=best[1] / height, across=across / width, down=down / height)
    return FieldShape(box=box, ellipse=ellipse)


def _ellipse_votes(score: Score, box: Box, ellipses: Floats, size: tuple[int, int]) -> Floats:
    """Return the votes inside each of N ellipses (x, y, across, down), in pixels of an image of the given size."""
    height, width = size
    x, y, across, down = (ellipses[:, i : i + 1] / (width, height)[i % 2] for i in range(4))
    inside = 1 - np.square((score.y[None] - y) / down)
    half = np.where(inside >= 0, across * np.sqrt(np.maximum(inside, 0)), -9.0)
    held = (score.y >= box.top) & (score.y <= box.bottom)
    left = np.maximum(x - half, box.left)
    right = np.where(held, np.minimum(x + half, box.right), -9.0)
    return score.between(left * score.width, right * score.width)


def ellipse_is_sharp(votes: Votes, shape: FieldShape) -> bool:
    """Return True if the ellipse of a shape follows a sharp edge where it bounds the field."""
    ellipse, box = shape.ellipse, shape.box
    if ellipse is None:
        return False
    height, width = votes.shape
    angle = np.linspace(0, 2 * np.pi, 240, endpoint=False)
    cosine, sine = each(math.cos, angle), each(math.sin, angle)
    x, y = ellipse.x + ellipse.across * cosine, ellipse.y + ellipse.down * sine
    bounds = (x > box.left) & (x < box.right) & (y > box.top) & (y < box.bottom)
    # The gradient of the ellipse's equation, in pixels, pointing inward.
    normal = -np.column_stack([cosine / (ellipse.across * width), sine / (ellipse.down * height)])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    points = np.column_stack([x * width, y * height])
    sharp, count = sharp_fraction(votes, points[bounds], normal[bounds])
    return count >= LEAST_ARC and sharp >= MIN_SHARP
