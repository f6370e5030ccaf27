"""Directional motion blur: the endoscope moved while the frame was exposed.

Every pixel is spread along a line centred on it, in linear light, so that reflections become bright streaks as they do
in fast withdrawal. The published blur (MedTest report, equation 2) has no direction.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import FollowUp, Image, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.portable import power
from medtest.core.recent import per_seed
from medtest.preparation.visibility import lesion_diameter
from medtest.relations.base import Relation
from medtest.relations.corruptions.line_filter import blur_along
from medtest.relations.levels import Level, LeveledSettings, number

LESION_SHARE = 0.25
"""Longest streak as share of the diameter of the smallest lesion, so that its outline stays where the mask has it."""
GAMMA = 2.2
HIGHLIGHT = 250
"""Grey level from which a pixel counts as clipped: the scene is brighter there than the image can show."""
HEADROOM = 3.0
"""Linear light of a clipped pixel, 1 = the brightest that the image can show."""
_STEPS = 4096


class StreakLevel(Level):
    """One severity.

    Attributes:
        length: Length of the motion as fraction of the image's height.
    """

    length: float = Field(gt=0.0, le=0.2)


StreakSettings = LeveledSettings[StreakLevel]


class Streak(Relation):
    """Directional motion blur of the field; one direction for all severities of a seed.

    The motion is at most a quarter of the smallest lesion's diameter long. Where that shortens it to the level below,
    the relation does not apply. The black frame is neither blurred nor dragged into the field.
    """

    Settings = StreakSettings
    group: ClassVar[str] = "motion"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})
    scale_unit: ClassVar[str] = "length of the motion (image height = 1)"
    nested: ClassVar[bool] = True

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the direction and limit the length.

        Raises:
            NotApplicable: The lesion is too small for this severity.
        """
        levels: dict[int, StreakLevel] = self.settings.levels
        angle = round(float(rng.uniform(0.0, 180.0)), 2)
        length = nominal = levels[severity].length * seed.height
        diameter = lesion_diameter(seed)
        if diameter is not None:
            length = min(nominal, LESION_SHARE * diameter)
        below = max((level.length for number, level in levels.items() if number < severity), default=0.0)
        if length <= max(below * seed.height, 1.0):
            raise NotApplicable(f"the lesion is too small for a motion of {nominal:.0f} pixels")
        return {
            "angle": angle,
            "length": round(length, 2),
            "scale": levels[severity].scale,
            **({"scale_applied": round(length / seed.height, 5)} if length < nominal else {}),
        }

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Spread the light of the field along the line."""
        offsets, weights = line(number(params, "length"), number(params, "angle"))
        light, share = _light_of_field(seed), (~seed.frame).astype(np.float32)
        blurred = blur_along(light, offsets, weights)
        if seed.frame.any():
            blurred /= np.maximum(blur_along(share, offsets, weights), np.float32(1e-3))[:, :, None]
        image = _to_grey_levels(blurred)
        cv2.copyTo(seed.image, seed.frame.view(np.uint8), image)
        return FollowUp(image=image, params=params, scale=number(params, "scale"))


def line(length: float, degrees: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the taps of a motion of even speed, centred on the pixel.

    Args:
        length: In pixels, > 0.
        degrees: Direction, clockwise from the right.

    Returns:
        int64 N×2 offsets (row, column) and float64 N weights that sum to 1; the line and its mirror image are equal.
    """
    reach = math.ceil(length / 2.0)
    index = np.arange(-reach, reach + 1)
    weights = np.clip(length / 2.0 + 0.5 - np.abs(index), 0.0, 1.0)
    angle = math.radians(degrees)
    # Rounding the magnitude keeps the line symmetric about its middle.
    offsets = np.stack([_round(index, math.sin(angle)), _round(index, math.cos(angle))], axis=1)
    return offsets, weights / weights.sum()


def _round(index: NDArray[np.int64], slope: float) -> NDArray[np.int64]:
    return np.sign(index) * np.floor(np.round(np.abs(index) * slope, 9) + 0.5).astype(np.int64)


@cache
def _linear() -> NDArray[np.float32]:
    table = power(np.arange(256) / 255.0, GAMMA)
    table[HIGHLIGHT:] = np.linspace(table[HIGHLIGHT], HEADROOM, 256 - HIGHLIGHT)
    return table.astype(np.float32)


@cache
def _grey_levels() -> NDArray[np.uint8]:
    return np.rint(255.0 * power(np.arange(_STEPS) / (_STEPS - 1), 1.0 / GAMMA)).astype(np.uint8)


@per_seed
def _light_of_field(seed: PreparedSeed) -> NDArray[np.float32]:
    """Return the linear light of the field, float32 H×W×3, 0 on the frame."""
    light = np.take(_linear(), seed.image)
    light[seed.frame] = 0.0
    return light


def _to_grey_levels(light: NDArray[np.float32]) -> Image:
    steps = np.minimum(light, np.float32(1.0)) * np.float32(_STEPS - 1) + np.float32(0.5)
    image: Image = np.take(_grey_levels(), steps.astype(np.uint16))
    return image
