"""Rectangles of on-screen displays over the field: black insets at its corners, coloured boxes anywhere.

Lengths are pixels of the small copy.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.preparation.evidence import DARK_VOTE, Votes, sharp_fraction
from medtest.preparation.field_shape import Box

MOST_STEPS = 3
"""Most rectangles of one corner's inset."""

MIN_GAIN = 6e-4
"""Least black pixels explained by an inset, as a fraction of the image."""

LARGEST = 0.66
"""Largest part of a side of the field's box taken by an inset."""

MIN_SHARP = 0.6
"""Least part of an inset's edges that must be sharp."""

MIN_POINTS = 5
"""Least points of an edge with a field bright enough to judge; fewer are ignored."""

DISPLAY_AREA = 0.002
"""Smallest coloured display, as a fraction of the image."""

DISPLAY_FILL = 0.7
"""Least part of its bounding box filled by a coloured display, without text and drawings on it."""

DISPLAY_SPREAD = 3.0
"""Largest median deviation of a coloured display's pixels from their median, in grey levels of any channel."""


def find_insets(votes: Votes, box: Box) -> list[tuple[int, int, int, int]]:
    """Return the black rectangles (left, top, right, bottom) at the corners of a box, in pixels.

    At each corner the rectangle with the most black and the fewest bright pixels is taken from a table of sums, then,
    without it, the next, so that steps and L-shapes become several rectangles. It is kept only if its sides
    within the field are sharp straight edges, which a dark lumen in a corner lacks.
    """
    height, width = votes.shape
    x0, x1 = round(box.left * width), round(box.right * width)
    y0, y1 = round(box.top * height), round(box.bottom * height)
    rectangles = []
    for right in (False, True):
        for bottom in (False, True):
            rest = votes[y0:y1, x0:x1].copy()
            turned = rest[:: -1 if bottom else 1, :: -1 if right else 1]
            for _ in range(MOST_STEPS):
                gain, across, down = _largest(turned)
                if gain < MIN_GAIN * votes.size:
                    break
                left = x1 - across if right else x0
                top = y1 - down if bottom else y0
                rectangle = (left, top, left + across, top + down)
                if not _is_inset(votes, rectangle, right=right, bottom=bottom):
                    break
                rectangles.append(rectangle)
                turned[:down, :across] = 0
    return rectangles


def _largest(votes: Votes) -> tuple[float, int, int]:
    """Return the gain, width and height of the best rectangle at the origin."""
    height, width = (max(1, int(LARGEST * n)) for n in votes.shape)
    sums = cv2.integral(votes[:height, :width])[1:, 1:]
    row, column = np.unravel_index(int(np.argmin(sums)), sums.shape)
    return -float(sums[row, column]), int(column) + 1, int(row) + 1


def _is_inset(
    votes: Votes,
    rectangle: tuple[int, int, int, int],
    *,
    right: bool,
    bottom: bool,
) -> bool:
    left, top, end, foot = rectangle
    y = np.arange(top, foot) + 0.5
    x = np.arange(left, end) + 0.5
    upright = np.column_stack([np.full(y.shape, left if right else end), y])
    level = np.column_stack([x, np.full(x.shape, top if bottom else foot)])
    sides = (
        sharp_fraction(votes, upright, np.array([-1.0 if right else 1.0, 0.0]), reach=1.5),
        sharp_fraction(votes, level, np.array([0.0, -1.0 if bottom else 1.0]), reach=1.5),
    )
    judged = [(fraction, count) for fraction, count in sides if count >= MIN_POINTS]
    points = sum(count for _, count in sides)
    return bool(judged) and points >= 2 * MIN_POINTS and all(fraction >= MIN_SHARP for fraction, _ in judged)


def display_boxes(rgb: NDArray[np.uint8]) -> list[tuple[int, int, int, int]]:
    """Return coloured display boxes (left, top, right, bottom): flat, rectangular, of a colour that tissue lacks.

    Positioning displays are flat cyan, green or blue rectangles. Tissue under narrow-band light or dye has such hues
    too, but it is never flat over a rectangle.

    Args:
        rgb: uint8 H×W×3.

    Returns:
        Boxes in pixels, right and bottom exclusive; empty without boxes.
    """
    channels = rgb.astype(np.int16)
    red, green, blue = channels[..., 0], channels[..., 1], channels[..., 2]
    strange = (np.maximum(green, blue) > 2 * red + 18).astype(np.uint8)
    if int(strange.sum()) < DISPLAY_AREA * strange.size:
        return []
    closed = cv2.morphologyEx(strange, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(closed, connectivity=4)
    boxes = []
    for label in range(1, count):
        left, top, across, down, area = (int(v) for v in stats[label])
        if area < DISPLAY_AREA * strange.size or area < DISPLAY_FILL * across * down:
            continue
        inside = (labels[top : top + down, left : left + across] == label) & (
            strange[top : top + down, left : left + across] > 0
        )
        colours = rgb[top : top + down, left : left + across][inside].astype(float)
        spread = np.median(np.abs(colours - np.median(colours, axis=0)), axis=0).max()
        if spread <= DISPLAY_SPREAD:
            boxes.append((left, top, left + across, top + down))
    return boxes


def black_out(votes: Votes, boxes: list[tuple[int, int, int, int]]) -> None:
    """Set the votes of display boxes to frame, in place."""
    for left, top, right, bottom in boxes:
        votes[top:bottom, left:right] = -DARK_VOTE


def leave_out(votes: Votes, boxes: list[tuple[int, int, int, int]]) -> Votes:
    """Return a copy of the votes with the boxes' pixels set to 0."""
    rest: Votes = votes.copy()
    for left, top, right, bottom in boxes:
        rest[top:bottom, left:right] = 0
    return rest
