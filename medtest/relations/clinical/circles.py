"""Places for round things (bubbles, drops): beside a lesion, far from it or on it."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import PreparedSeed
from medtest.relations.placement import distance_to, keep_out, lesion_distance

Placement: TypeAlias = Literal["beside", "far", "on"]
NEAR = 0.2
"""Distance from the lesion, as fraction of the image's height, up to which a place is beside it."""
STEP = 4
"""Grid spacing of candidate centres in pixels."""

Circle: TypeAlias = tuple[float, float, float]
"""Column, row and radius in pixels."""


class CirclePlaces:
    """Free centres for circles that do not overlap one another.

    Args:
        seed: The prepared seed. Circles stay in the field of view.
        placement: ``beside``: off the lesion with the margin, the centre within :data:`NEAR` and the radius of it;
            ``far``: farther than that; ``on``: the centre on the lesion. Without a lesion the first two are anywhere
            outside the central ellipse (:func:`~medtest.relations.placement.keep_out`).
        margin: Least distance in pixels between a circle's rim and the lesion (``beside``, ``far``).
    """

    def __init__(self, seed: PreparedSeed, placement: Placement, margin: int) -> None:
        self.near = NEAR * seed.height
        self.placement = placement
        self.taken: list[Circle] = []
        self.rows, self.columns, self.room, self.distance = seed.memo(
            f"circles.{placement}.{margin}", lambda: _candidates(seed, placement, margin)
        )

    def draw(
        self, radius: float, rng: np.random.Generator, *, reach: float = 1.0, touching: int | None = None
    ) -> Circle | None:
        """Draw a free centre for a circle; None without room.

        Args:
            radius: In pixels.
            rng: One number is drawn.
            reach: Radius within which pixels change, as multiple of ``radius``; it stays off the lesion and the frame.
            touching: Index of a circle in ``taken`` beside which it shall be, where there is room.
        """
        number = float(rng.random())
        free = self.room > reach * radius + 1.0
        if self.distance is not None and self.placement == "beside":
            free &= self.distance <= self.near + radius
        if self.distance is not None and self.placement == "far":
            free &= self.distance > self.near + radius
        for column, row, other in self.taken:
            free &= np.hypot(self.columns - column, self.rows - row) >= 0.9 * (radius + other)
        if touching is not None:
            column, row, other = self.taken[touching]
            beside = free & (np.hypot(self.columns - column, self.rows - row) <= 0.9 * (radius + other) + STEP)
            free = beside if beside.any() else free
        places = np.flatnonzero(free)
        if places.size == 0:
            return None
        chosen = places[min(int(number * places.size), places.size - 1)]
        circle = (float(self.columns[chosen]), float(self.rows[chosen]), radius)
        self.taken.append(circle)
        return circle


def _candidates(
    seed: PreparedSeed, placement: Placement, margin: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32] | None]:
    """Return rows and columns of candidate centres, the largest radius at each, and the distance from the lesion."""
    if placement == "on" and seed.mask is not None:
        blocked = seed.frame
    else:
        blocked = np.logical_or(keep_out(seed, margin=margin), seed.frame)
    padded = np.pad(blocked, 1, constant_values=True)
    found = distance_to(padded)
    room = np.full(padded.shape, math.inf, np.float32) if found is None else found
    distance = lesion_distance(seed)
    grid = (slice(None, None, STEP), slice(None, None, STEP))
    room = room[1:-1, 1:-1][grid]
    usable = room > 1
    if placement == "on" and seed.mask is not None:
        usable &= seed.mask[grid]
    rows, columns = np.nonzero(usable)
    near = None if distance is None else distance[grid][usable]
    return rows * STEP, columns * STEP, room[usable], near
