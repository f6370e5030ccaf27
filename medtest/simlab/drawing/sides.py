"""Spatial relations in the product's pictures: placing a box in a relation, and testing whether it holds.

Things are placed well within (:func:`ways`) the limits of a relation (:func:`is_on_side`). Boxes are ``(left, top,
right, bottom)`` as fractions of a square picture.
"""

from __future__ import annotations

from random import Random
from typing import TypeAlias

Area: TypeAlias = tuple[float, float, float, float]
SIDES = ("on", "under", "above", "left of", "right of", "in front of", "behind", "in", "near")
TURNED = {
    "left of": "right of",
    "right of": "left of",
    "above": "under",
    "under": "above",
    "in front of": "behind",
    "behind": "in front of",
}
"""Opposite relations, used when sides are swapped."""
_SLANT = 0.45
_TOUCH = 0.035
_CLEAR = 0.11
_STEP = 0.07


def is_on_side(side: str, area: Area, other: Area) -> bool:
    """Return True if a relation plainly holds between two boxes."""
    width, height = _size(area)
    its_width, its_height = _size(other)
    across = (area[0] + area[2] - other[0] - other[2]) / 2
    down = (area[1] + area[3] - other[1] - other[3]) / 2
    wide, high = width + its_width, height + its_height
    if side == "left of":
        return across <= -0.5 * wide and abs(down) <= _SLANT * abs(across)
    if side == "above":
        return down <= -0.5 * high - _CLEAR * high / 2 and abs(across) <= _SLANT * abs(down)
    if side == "right of":
        return is_on_side("left of", other, area)
    if side == "under":
        return is_on_side("above", other, area)
    if side == "on":
        shared = min(area[2], other[2]) - max(area[0], other[0])
        return abs(area[3] - other[1]) <= _TOUCH * high and down < 0 and shared >= 0.6 * min(width, its_width)
    if side == "in":
        inside = area[0] >= other[0] and area[1] >= other[1] and area[2] <= other[2] and area[3] <= other[3]
        return inside and width * height <= 0.6 * its_width * its_height and other[3] - area[3] >= _STEP * high
    if side == "in front of":
        shares = shared_area(area, other) / min(width * height, its_width * its_height)
        return 0.13 <= shares <= 0.45 and area[3] - other[3] >= _STEP * high and not is_on_side("on", other, area)
    if side == "behind":
        return is_on_side("in front of", other, area)
    return gap(area, other) <= 0.4 * _middling(area, other)


def ways(side: str, size: tuple[float, float], other: Area, draw: Random) -> tuple[float, float]:
    """Draw a centre for a box of a given size so that a relation to another box is likely to hold.

    Args:
        side: One of :data:`SIDES`.
        size: Width and height.
        other: The other box.
        draw: Random generator.
    """
    width, height = size
    its_width, its_height = _size(other)
    x, y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    wide, high = (width + its_width) / 2, (height + its_height) / 2
    if side in ("left of", "right of"):
        away = wide * (1.08 + 2.0 * draw.random() ** 2) + 0.01
        return x + (-away if side == "left of" else away), y + away * draw.uniform(-0.3, 0.3)
    if side in ("above", "under"):
        away = high * (1.15 + 2.0 * draw.random() ** 2) + 0.01
        return x + away * draw.uniform(-0.3, 0.3), y + (-away if side == "above" else away)
    if side == "on":
        room = 0.5 * abs(its_width - width) + 0.15 * min(width, its_width)
        return x + draw.uniform(-room, room), other[1] - height / 2 + draw.uniform(0.0, 0.015) * 2 * high
    if side == "in":
        free = (max(0.0, its_width - width) / 2, max(0.0, its_height - height) / 2)
        return x + draw.uniform(-0.8, 0.8) * free[0], y + draw.uniform(-0.7, 0.5) * free[1]
    if side in ("in front of", "behind"):
        ahead = 1.0 if side == "in front of" else -1.0
        if draw.random() < 0.5:  # across a lower corner, or the lower edge
            return (
                x + draw.choice((-1.0, 1.0)) * wide * draw.uniform(0.35, 0.75),
                y + ahead * high * draw.uniform(0.3, 0.8),
            )
        return x + wide * draw.uniform(-0.3, 0.3), y + ahead * high * draw.uniform(0.55, 0.85)
    away = wide + 0.4 * _middling_sizes(size, (its_width, its_height)) * draw.uniform(0.1, 0.7)
    return x + draw.choice((-1.0, 1.0)) * away, other[3] - height / 2 + draw.uniform(-0.1, 0.1) * high


def around(size: tuple[float, float], centre: tuple[float, float]) -> Area:
    """Return the box of a given size around a centre."""
    return (
        centre[0] - size[0] / 2,
        centre[1] - size[1] / 2,
        centre[0] + size[0] / 2,
        centre[1] + size[1] / 2,
    )


def shared_area(area: Area, other: Area) -> float:
    """Return the area shared by two boxes."""
    across = min(area[2], other[2]) - max(area[0], other[0])
    down = min(area[3], other[3]) - max(area[1], other[1])
    return max(across, 0.0) * max(down, 0.0)


def gap(area: Area, other: Area) -> float:
    """Return the distance between the nearest points of two boxes."""
    across = max(area[0] - other[2], other[0] - area[2], 0.0)
    down = max(area[1] - other[3], other[1] - area[3], 0.0)
    return float((across * across + down * down) ** 0.5)


def _size(box: Area) -> tuple[float, float]:
    return box[2] - box[0], box[3] - box[1]


def _middling(first: Area, second: Area) -> float:
    return _middling_sizes(_size(first), _size(second))


def _middling_sizes(first: tuple[float, float], second: tuple[float, float]) -> float:
    return float((first[0] * first[1]) ** 0.5 + (second[0] * second[1]) ** 0.5) / 2
