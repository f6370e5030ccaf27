"""Gas bubbles in fluid on the mucosa: see-through discs with a thin bright rim and a few glints."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar

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
CONTRAST = 1.45
"""Factor on the profile at the rim towards the lamp; its opposite is weakened alike."""


class Bubbles(CircleRelation):
    """Bubbles, alone and in foam, lit from the lens."""

    scale_unit: ClassVar[str] = "number of bubbles"
    what: ClassVar[str] = "bubbles"
    revision: ClassVar[int] = 2

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
        _draw_bubble(image, seed, (column, row, radius), ((left + right) / 2, (top + bottom) / 2), touched)


def _draw_bubble(
    image: Image,
    seed: PreparedSeed,
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
    down = np.arange(top, top + part.shape[0], dtype=np.float64)[:, None] - row
    across = np.arange(left, left + part.shape[1], dtype=np.float64)[None, :] - column
    distance = np.sqrt(down * down + across * across)
    lean = np.array([lamp[0] - column, lamp[1] - row])
    far = float(np.sqrt((lean * lean).sum()))
    towards = lean / far if far > 1.0 else np.array([0.0, -1.0])
    # The half of the rim that faces the lamp is brighter.
    facing = (across * towards[0] + down * towards[1]) / np.maximum(distance, 1.0)
    change = np.interp(distance / radius, *np.array(PROFILE).T) * (1.0 + (CONTRAST - 1.0) * facing)
    part *= (1.0 + change).astype(np.float32)[:, :, None]
    # A rim also catches light of its own, which shows on dark ground.
    part += np.maximum(change, 0.0).astype(np.float32)[:, :, None] * np.float32(70.0)
    for offset, size in GLINTS:
        centre = (towards[0] * offset * radius, towards[1] * offset * radius)
        cover = _glint(across - centre[0], down - centre[1], towards, max(size * radius, 0.7))
        part += cover[:, :, None] * (np.array(GLINT, np.float32) - part)
    part[seed.frame[place]] = image[place][seed.frame[place]]
    image[place] = np.clip(part + np.float32(0.5), 0.0, 255.0).astype(np.uint8)
    touched[place][(distance <= radius) & ~seed.frame[place]] = 1


def _glint(
    across: NDArray[np.float64], down: NDArray[np.float64], towards: NDArray[np.float64], size: float
) -> NDArray[np.float32]:
    """Return the opacity of a reflection, twice as wide across the direction of the lamp, with an edge of a pixel."""
    along = across * towards[0] + down * towards[1]
    beside = down * towards[0] - across * towards[1]
    distance = np.sqrt(along * along + beside * beside / 4.0) - size
    return np.asarray(np.take(_edge(), np.clip(np.rint((distance + 1.0) * 64.0), 0, 255).astype(np.intp)), np.float32)


@lru_cache(maxsize=1)
def _edge() -> NDArray[np.float32]:
    """Return the opacity by distance from the edge, from −1 to 3 pixels: full inside, 42 % at 1 pixel outside."""
    outside = np.maximum(np.arange(256) / 64.0 - 1.0, 0.0)
    return (0.92 * exp(-0.87 * outside * outside)).astype(np.float32)
