"""Drops of water or mucus on the lens: blurred, refracting areas with a dark and a bright rim."""

from __future__ import annotations

import math
from typing import Any, ClassVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Effect, FollowUp, Image, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.relations.base import Relation
from medtest.relations.clinical.circles import CirclePlaces, Placement
from medtest.relations.levels import Level, LeveledSettings, number
from medtest.relations.placement import grid_shares

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


class DropLevel(Level):
    """One severity.

    Attributes:
        count: Number of drops.
    """

    count: int = Field(ge=1, le=60)


class DropSettings(LeveledSettings[DropLevel]):
    """Settings of ``lens_drop``.

    Attributes:
        radius: Mean radius as fraction of the image's height.
        placement: ``beside`` the lesion, ``far`` from it or ``on`` it. A drop bends light, so that on the lesion the
            mask no longer holds.
        margin: Least distance from the lesion as fraction of the image's height (``beside``, ``far``).
    """

    radius: float = Field(default=0.06, gt=0.005, le=0.2)
    placement: Placement = "beside"
    margin: float = Field(default=0.03, ge=0.0, le=0.25)


class LensDrop(Relation):
    """Drops on the lens; a severity adds drops to those of the level below."""

    Settings = DropSettings
    group: ClassVar[str] = "objects"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})
    scale_unit: ClassVar[str] = "number of drops"
    nested: ClassVar[bool] = True

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw and place the drops one after the other.

        Raises:
            NotApplicable: There is not enough room.
        """
        settings: DropSettings = self.settings
        level = settings.levels[severity]
        places = CirclePlaces(seed, settings.placement, round(settings.margin * seed.height))
        shade = round(float(rng.uniform(0.0, 360.0)), 1)
        drops: list[Drop] = []
        for _ in range(level.count):
            radius = round(settings.radius * seed.height * float(rng.uniform(*RADII)), 1)
            waves = [[round(float(rng.uniform(0, u)), 3), round(float(rng.uniform(0, 360)), 1)] for u in UNEVEN]
            circle = places.draw(REACH * radius, rng)
            if circle is None:
                raise NotApplicable(f"no room for {level.count} drops")
            drops.append({"x": circle[0], "y": circle[1], "radius": radius, "waves": waves})
        return {"drops": drops, "shade": shade, "scale": level.scale}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Draw the drops over the field."""
        image = seed.image.copy()
        touched = np.zeros(image.shape[:2], np.uint8)
        drops = cast("list[Drop]", params["drops"])
        for drop in drops:
            _draw_drop(image, seed, drop, number(params, "shade"), touched)
        return FollowUp(
            image=image,
            params=params,
            scale=number(params, "scale"),
            effect=Effect(kind="add", data={"what": "drops", "count": len(drops), "grid": grid_shares(touched)}),
            facts={"object_area": np.count_nonzero(touched) / max(1, int(np.count_nonzero(~seed.frame)))},
        )


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
