"""Drops of water or mucus on the lens: blurred, refracting areas with a dark and a bright rim."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.relations.clinical.circles import CirclePlaces, CircleRelation
from medtest.relations.levels import number

RADII = (0.55, 1.45)
"""Smallest and largest radius as multiples of the level's."""
LOBES = (2, 3, 5)
"""Waves around a drop's outline."""
UNEVEN = (0.10, 0.06, 0.025)
"""Largest amplitude of each wave as share of the radius."""
REACH = 1.2
MAGNIFY = (0.55, 1.0)
"""Magnification of what is seen through a drop: in its middle, and at its rim."""
BLUR = 0.14
"""Standard deviation of the blur inside as share of the radius."""
FEATHER = 0.30
"""Width of the soft rim as share of the radius: a drop is out of focus."""
SHADE = 0.11
"""Darkening of the rim on one side, and brightening on the other, as share of the brightness."""
LIFT = 0.05
"""Brightening of the inside."""

Drop = dict[str, Any]


class LensDrop(CircleRelation):
    """Drops on the lens; one side of all is lighter than the other."""

    scale_unit: ClassVar[str] = "number of drops"
    what: ClassVar[str] = "drops"
    revision: ClassVar[int] = 2

    def shared_parameters(self, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the direction of the lighter side in degrees."""
        return {"shade": round(float(rng.uniform(0.0, 360.0)), 1)}

    def place_next(self, places: CirclePlaces, radius: float, index: int, rng: np.random.Generator) -> Drop | None:
        """Draw the radius and the outline, and place the drop."""
        own = round(radius * float(rng.uniform(*RADII)), 1)
        waves = [[round(float(rng.uniform(0, u)), 3), round(float(rng.uniform(0, 360)), 1)] for u in UNEVEN]
        circle = places.draw(REACH * own, rng)
        return None if circle is None else {"x": circle[0], "y": circle[1], "radius": own, "waves": waves}

    def draw(self, image: Image, seed: PreparedSeed, params: Params, item: Any, touched: NDArray[np.uint8]) -> None:
        """Draw one drop."""
        _draw_drop(image, seed, item, number(params, "shade"), touched)


def _draw_drop(image: Image, seed: PreparedSeed, drop: Drop, shade: float, touched: NDArray[np.uint8]) -> None:
    """Draw one drop into ``image`` and mark its area in ``touched``."""
    radius = float(drop["radius"])
    pad = math.ceil(REACH * radius) + 1
    top, left = max(int(drop["y"]) - pad, 0), max(int(drop["x"]) - pad, 0)
    place = (slice(top, int(drop["y"]) + pad + 1), slice(left, int(drop["x"]) + pad + 1))
    source = seed.image[place]
    down = np.arange(top, top + source.shape[0], dtype=np.float64)[:, None] - float(drop["y"])
    across = np.arange(left, left + source.shape[1], dtype=np.float64)[None, :] - float(drop["x"])
    distance = np.sqrt(down * down + across * across)
    share = distance / (radius * _outline(across, down, distance, drop["waves"]))
    cover = np.clip((1.0 - share) / FEATHER + 0.5, 0.0, 1.0)
    cover *= cover * (3.0 - 2.0 * cover)
    # A flat lens shows its surroundings smaller, most in the middle.
    zoom = 1.0 / (MAGNIFY[0] + (MAGNIFY[1] - MAGNIFY[0]) * np.minimum(share, 1.0))
    columns = (float(drop["x"]) + across * zoom - left).astype(np.float32)
    rows = (float(drop["y"]) + down * zoom - top).astype(np.float32)
    through = cv2.remap(_filled(source, seed.frame[place]), columns, rows, cv2.INTER_LINEAR, None, cv2.BORDER_REFLECT)
    through = cv2.GaussianBlur(through, (0, 0), max(BLUR * radius, 0.8)).astype(np.float32)
    angle = math.radians(shade)
    facing = (across * math.cos(angle) + down * math.sin(angle)) / np.maximum(distance, 1.0)
    rim = np.clip((share - 0.55) / 0.35, 0.0, 1.0)
    light = 1.0 + LIFT + SHADE * facing * rim * rim
    mixed = source + cover.astype(np.float32)[:, :, None] * (through * light.astype(np.float32)[:, :, None] - source)
    inside = ~seed.frame[place]
    part = image[place]
    part[inside] = np.clip(mixed[inside] + np.float32(0.5), 0.0, 255.0).astype(np.uint8)
    touched[place][(cover > 0.5) & inside] = 1


def _outline(
    across: NDArray[np.float64], down: NDArray[np.float64], distance: NDArray[np.float64], waves: list[list[float]]
) -> NDArray[np.float64]:
    """Return the radius of an uneven drop in each pixel's direction, as share of its mean radius."""
    # cos(n·φ) and sin(n·φ) by the addition theorems, in plain products that every processor rounds alike.
    cosine, sine = across / np.maximum(distance, 1e-9), down / np.maximum(distance, 1e-9)
    total = np.ones(distance.shape)
    for lobes, (size, turn) in zip(LOBES, waves, strict=True):
        real, imaginary = cosine, sine
        for _ in range(lobes - 1):
            real, imaginary = real * cosine - imaginary * sine, real * sine + imaginary * cosine
        phase = math.radians(turn)
        total += size * (real * math.cos(phase) - imaginary * math.sin(phase))
    return total


def _filled(source: Image, frame: NDArray[np.bool_]) -> Image:
    """Return the part with the black frame replaced by the mean colour of the field in it."""
    if not frame.any() or frame.all():
        return source
    filled = source.copy()
    filled[frame] = np.rint(source[~frame].mean(axis=0)).astype(np.uint8)
    return filled
