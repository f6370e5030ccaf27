"""Layouts of the scenes for training and evaluating the reader.

Things stand alone or next to another one: on it, beside it, in front of it, in it; apart, touching or overlapping.
Simlab lays out its pictures by its own rules, which are independent of this module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from medtest.core.scenes import Box
from medtest.phantoms.scenes import ASPECTS, CLASSES, COLOURS, Placed

MOST_THINGS: Final = 9
SIZES: Final = (0.12, 0.46)
"""Square root of a thing's area, relative to the picture's side; log-uniformly distributed."""
MOST_HIDDEN: Final = 0.36
"""Largest share of the smaller one of two things that overlaps, unless one is inside the other."""
MOST_FILLED: Final = 0.33
"""Largest share of a thing filled by another one inside it."""
MOST_COVERED: Final = 0.45
"""Largest share of a thing covered by all things in front of it."""
TRIES: Final = 24
_PLACES: Final = ("alone", "alone", "on", "on", "beside", "front", "in", "near")


def random_layout(rng: np.random.Generator, *, most: int = MOST_THINGS) -> list[Placed]:
    """Return random things in a random arrangement, in drawing order.

    Args:
        rng: Random number generator.
        most: Maximum number of things; one in 25 layouts has none.
    """
    count = 0 if rng.uniform() < 0.04 else int(rng.integers(1, most + 1))
    scale = float(rng.uniform(0.8, 1.15))
    placed: list[Placed] = []
    for _ in range(count):
        again = placed and rng.uniform() < 0.2
        name = placed[-1].name if again else CLASSES[int(rng.integers(len(CLASSES)))]
        colour = COLOURS[int(rng.integers(len(COLOURS)))]
        box = _free(placed, name, scale, rng)
        if box is not None:
            placed.append(Placed(name=name, colour=colour, box=box))
    return placed


def pair_layout(rng: np.random.Generator, *, overlap: float) -> list[Placed]:
    """Return two things, one above the other.

    Args:
        rng: Random number generator.
        overlap: Overlap as a share of the smaller height; 0 if they touch, negative for a gap.
    """
    for _ in range(1000):
        below, above = (_sized(CLASSES[int(rng.integers(len(CLASSES)))], 1.0, rng) for _ in range(2))
        low_name, low_w, low_h = below
        high_name, high_w, high_h = above
        shared = overlap * min(low_h, high_h)
        if low_h + high_h - shared > 0.96 or max(low_w, high_w) > 0.96:
            continue
        top = float(rng.uniform(0.02, 0.98 - (low_h + high_h - shared)))
        centre = float(rng.uniform(0.5 * max(low_w, high_w) + 0.02, 0.98 - 0.5 * max(low_w, high_w)))
        shift = float(rng.uniform(-0.2, 0.2)) * min(low_w, high_w)
        first = (centre - 0.5 * low_w, top + high_h - shared, centre + 0.5 * low_w, top + high_h - shared + low_h)
        left = min(max(centre + shift - 0.5 * high_w, 0.0), 1.0 - high_w)
        second = (left, top, left + high_w, top + high_h)
        colours = [COLOURS[int(rng.integers(len(COLOURS)))] for _ in range(2)]
        return [
            Placed(name=low_name, colour=colours[0], box=first),
            Placed(name=high_name, colour=colours[1], box=second),
        ]
    raise AssertionError("no two things fit above each other")


def _sized(name: str, scale: float, rng: np.random.Generator) -> tuple[str, float, float]:
    """Return a class with a random width and height."""
    low, high = (math.log(bound) for bound in SIZES)
    size = math.exp(float(rng.uniform(low, high))) * scale
    stretch = math.sqrt(ASPECTS[name] * math.exp(float(rng.uniform(-0.25, 0.25))))
    return name, size * stretch, size / stretch


def _free(placed: Sequence[Placed], name: str, scale: float, rng: np.random.Generator) -> Box | None:
    """Return a free box for a thing of a class; None if no place was found."""
    for _ in range(TRIES):
        _, width, height = _sized(name, scale, rng)
        width, height = max(width, 0.07), max(height, 0.07)
        where = _PLACES[int(rng.integers(len(_PLACES)))] if placed else "alone"
        other = placed[int(rng.integers(len(placed)))].box if placed else (0.0, 0.0, 1.0, 1.0)
        if where == "in":
            width, height, left, top = _inside(other, width / height, rng)
        else:
            left, top = _beside(where, other, width, height, rng)
        box = (left, top, left + width, top + height)
        if min(width, height) < 0.08 or min(left, top) < 0.0 or max(box[2], box[3]) > 1.0:
            continue
        if _stays_visible(box, [entity.box for entity in placed]):
            return box
    return None


def _stays_visible(box: Box, others: Sequence[Box]) -> bool:
    """Return True if everything remains visible when a box is added in front of others.

    It shares little with each, or is inside one that contains nothing else; at most :data:`MOST_COVERED` of each is
    covered by all that is in front.
    """
    holders = [number for number, candidate in enumerate(others) if _holds(candidate, box)]
    if len(holders) > 1 or any(
        _holds(others[number], third) or _holds(third, others[number])
        for number in holders
        for third in others
        if third is not others[number]
    ):
        return False
    for number, neighbour in enumerate(others):
        if number not in holders and _shared(box, neighbour) > MOST_HIDDEN * min(_area(box), _area(neighbour)):
            return False
        if sum(_shared(front, neighbour) for front in (*others[number + 1 :], box)) > MOST_COVERED * _area(neighbour):
            return False
    return True


def _inside(other: Box, aspect: float, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Return width, height, left and top of something inside a box."""
    wide, high = other[2] - other[0], other[3] - other[1]
    height = float(rng.uniform(0.35, 0.56)) * high
    width = min(height * aspect, 0.6 * wide)
    left = other[0] + float(rng.uniform(0.05, 0.95)) * (wide - width)
    return width, height, left, other[1] + float(rng.uniform(0.02, 0.8)) * (high - height)


def _beside(where: str, other: Box, width: float, height: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return left and top edge of something next to a box, or anywhere."""
    gap = _gap(rng) * min(height, other[3] - other[1])
    side = _gap(rng) * min(width, other[2] - other[0])
    if where == "on":
        return _between(other[0] - 0.4 * width, other[2] - 0.6 * width, rng), other[1] - height - gap
    if where == "beside":
        level = other[3] - height
        if rng.uniform() < 0.5:
            level = _between(other[1] - 0.5 * height, other[3] - 0.5 * height, rng)
        return (other[2] + side if rng.uniform() < 0.5 else other[0] - width - side), level
    if where == "front":
        shift = float(rng.uniform(-0.8, 0.8)) * (other[2] - other[0])
        return other[0] + shift, other[3] - height + float(rng.uniform(0.1, 0.8)) * height
    if where == "near":
        left = _between(other[0] - 1.4 * width, other[2] + 0.4 * width, rng)
        return left, _between(other[1] - 1.4 * height, other[3] + 0.4 * height, rng)
    return _between(0.0, 1.0 - width, rng), _between(0.0, 1.0 - height, rng)


def _between(first: float, second: float, rng: np.random.Generator) -> float:
    return float(rng.uniform(min(first, second), max(first, second)))


def _gap(rng: np.random.Generator) -> float:
    """Return the distance of two things as a share of the smaller side: some touch, some overlap."""
    kind = int(rng.integers(4))
    if kind == 0:
        return float(rng.uniform(0.02, 0.4))
    return float(rng.uniform(-0.03, 0.02)) if kind < 3 else float(rng.uniform(-0.25, -0.03))


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _shared(first: Box, second: Box) -> float:
    width, height = (
        min(first[2], second[2]) - max(first[0], second[0]),
        min(first[3], second[3]) - max(first[1], second[1]),
    )
    return max(width, 0.0) * max(height, 0.0)


def _holds(holder: Box, box: Box) -> bool:
    """Return True if a box is inside another and leaves most of it free."""
    return _shared(holder, box) >= 0.95 * _area(box) and _area(box) <= MOST_FILLED * _area(holder)
