"""Gas bubbles in fluid on the mucosa: see-through discs with a thin bright rim and a few glints."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.core.portable import exp
from medtest.relations.clinical.circles import CirclePlaces, CircleRelation
from medtest.relations.placement import field_box

PROFILE = (
    (0.0, -0.02),
    (0.3, -0.10),
    (0.5, -0.14),
    (0.7, -0.01),
    (0.85, 0.05),
    (0.91, 0.11),
    (1.0, 0.055),
    (1.08, -0.02),
    (1.2, -0.025),
    (1.3, 0.0),
)
"""Share of the radius, and change of brightness there as share of the background's.

The shape follows 242 bubbles in capsule endoscopy: −5 L at half the radius, +5 L at 0.9, a faint dark ring outside.
"""
REACH = 1.3
SPREAD = 0.42
"""Standard deviation of the logarithm of the radius: nine of ten bubbles have 0.5 to 2 times the median."""
RADII = (0.45, 2.1)
"""Smallest and largest radius as multiples of the median."""
IN_FOAM = 0.75
"""Probability that a bubble touches an earlier one."""
GLINT = (250.0, 238.0, 216.0)
"""Colour of a reflection of the lamp, in grey levels."""
GLINTS = ((0.50, 0.055), (0.66, 0.03), (-0.68, 0.025))
"""Distance of each glint from the centre towards the lamp, and its size, as shares of the radius."""
FINE = 64
"""Steps of a radius at which the profile is tabulated."""
CONTRAST = 1.45
"""Factor on the profile at the rim towards the lamp; its opposite is weakened alike."""


class Bubbles(CircleRelation):
    """Bubbles, alone and in foam, lit from the lens."""

    scale_unit: ClassVar[str] = "number of bubbles"
    what: ClassVar[str] = "bubbles"
    revision: ClassVar[int] = 3

    def place_next(
        self, places: CirclePlaces, radius: float, index: int, rng: np.random.Generator
    ) -> list[float] | None:
        """Draw the radius and place the bubble, often beside an earlier one."""
        size = math.exp(SPREAD * float(rng.standard_normal()))
        own = round(radius * min(max(size, RADII[0]), RADII[1]), 1)
        touching = int(rng.integers(max(index, 1))) if rng.random() < IN_FOAM and index else None
        circle = places.draw(own, rng, reach=REACH, touching=touching)
        return None if circle is None else list(circle)

    def draw(self, image: Image, seed: PreparedSeed, params: Params, item: Any, touched: NDArray[np.uint8]) -> None:
        """Draw one bubble."""
        top, left, bottom, right = field_box(seed)
        column, row, radius = item
        _draw_bubble(image, (column, row, radius), ((left + right) / 2, (top + bottom) / 2), touched)


def _draw_bubble(
    image: Image,
    circle: tuple[float, float, float],
    lamp: tuple[float, float],
    touched: NDArray[np.uint8],
) -> None:
    """Draw one bubble into ``image`` and mark its disc in ``touched``."""
    column, row, radius = circle
    pad = math.ceil(REACH * radius) + 2
    top, left = max(int(row) - pad, 0), max(int(column) - pad, 0)
    place = (slice(top, int(row) + pad + 1), slice(left, int(column) + pad + 1))
    part = image[place].astype(np.float32)
    down = np.arange(top, top + part.shape[0], dtype=np.float32)[:, None] - np.float32(row)
    across = np.arange(left, left + part.shape[1], dtype=np.float32)[None, :] - np.float32(column)
    distance = np.sqrt(down * down + across * across)
    lean_x, lean_y = lamp[0] - column, lamp[1] - row
    far = math.sqrt(lean_x * lean_x + lean_y * lean_y)
    towards = (lean_x / far, lean_y / far) if far > 1.0 else (0.0, -1.0)
    # The half of the rim that faces the lamp is brighter.
    facing = (across * np.float32(towards[0]) + down * np.float32(towards[1])) / np.maximum(distance, np.float32(1))
    step = (distance * np.float32(FINE / radius)).astype(np.intp)
    change = np.take(_profile(), step, mode="clip") * (np.float32(1) + np.float32(CONTRAST - 1.0) * facing)
    part *= cv2.merge([change + np.float32(1)] * 3)
    # A rim also catches light of its own, which shows on dark ground.
    part += cv2.merge([np.maximum(change, np.float32(0)) * np.float32(70)] * 3)
    for offset, size in GLINTS:
        centre = (towards[0] * offset * radius, towards[1] * offset * radius)
        _add_glint(part, across - np.float32(centre[0]), down - np.float32(centre[1]), towards, max(size * radius, 0.7))
    image[place] = np.clip(part + np.float32(0.5), 0.0, 255.0).astype(np.uint8)
    touched[place] |= distance <= radius


@lru_cache(maxsize=1)
def _profile() -> NDArray[np.float32]:
    """Return the change of brightness by distance in steps of 1 ÷ :data:`FINE` of the radius; 0 from the reach on."""
    places = (np.arange(math.ceil(REACH * FINE) + 1) + 0.5) / FINE
    return np.asarray(np.interp(places, *np.array(PROFILE).T), np.float32)


def _add_glint(
    part: NDArray[np.float32],
    across: NDArray[np.float32],
    down: NDArray[np.float32],
    towards: tuple[float, float],
    size: float,
) -> None:
    """Add a reflection, twice as wide across the direction of the lamp, with an edge of a pixel."""
    reach = 2.0 * (size + 3.0)
    columns, rows = (np.flatnonzero(np.abs(places.ravel()) <= reach) for places in (across, down))
    place = (slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1))
    across, down = across[:, place[1]], down[place[0]]
    along = across * np.float32(towards[0]) + down * np.float32(towards[1])
    beside = down * np.float32(towards[0]) - across * np.float32(towards[1])
    distance = np.sqrt(along * along + beside * beside * np.float32(0.25)) + np.float32(1.0 - size)
    step = np.clip(np.rint(distance * np.float32(64)), 0, 255).astype(np.intp)
    cover = cv2.merge([np.take(_edge(), step)] * 3)
    part[place] += cover * (np.array(GLINT, np.float32) - part[place])


@lru_cache(maxsize=1)
def _edge() -> NDArray[np.float32]:
    """Return the opacity by distance from the edge, from −1 to 3 pixels: full inside, 42 % at 1 pixel outside."""
    outside = np.maximum(np.arange(256) / 64.0 - 1.0, 0.0)
    return (0.92 * exp(-0.87 * outside * outside)).astype(np.float32)
