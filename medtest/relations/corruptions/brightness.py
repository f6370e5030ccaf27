"""Brightness: a constant added to the value of HSV (ImageNet-C and ImageNet-P ``brightness``)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.relations.corruptions.base import Corruption, CorruptionSettings, FrameAt, Sweep
from medtest.relations.levels import Level, number

WHITE = 255.0


class BrightnessLevel(Level):
    """One severity.

    Attributes:
        change: Added to V of HSV, in [0, 1].
    """

    change: float = Field(gt=0.0, le=1.0)


BrightnessSettings = CorruptionSettings[BrightnessLevel, Sweep]


class Brightness(Corruption):
    """V' = clip(V + c, 0, 1), hue and saturation unchanged; sequences sweep c (released: −0.30 + 0.02 i).

    Multiplying all three colours by V' / V, with V the largest of them, keeps hue and saturation exactly; black has
    neither and becomes grey.
    """

    Settings = BrightnessSettings
    group: ClassVar[str] = "weather"
    effects: ClassVar[frozenset[str]] = frozenset({"relight"})
    scale_unit: ClassVar[str] = "change of V, white = 1"

    def at_level(self, level: BrightnessLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the change; nothing is drawn."""
        return {"change": level.change}

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the change of the frame."""
        change = frame.swept(self.settings.sequence, identity=0.0)
        return {"change": change, "scale": abs(change)}

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Multiply each pixel's colours by the gain of its largest one."""
        change = number(params, "change")
        colours = cv2.split(seed.image)
        value = cv2.max(cv2.max(colours[0], colours[1]), colours[2])
        gain = cv2.LUT(value, _gains(change))
        image = cv2.merge([cv2.multiply(colour, gain, dtype=cv2.CV_8U) for colour in colours])
        image[value == 0] = round(WHITE * min(max(change, 0.0), 1.0))
        return np.asarray(image)


@lru_cache(maxsize=64)
def _gains(change: float) -> NDArray[np.float32]:
    """Return V' / V for the 256 values of V; 1 for black, which has no colour to multiply."""
    value = np.arange(1, 256) / WHITE
    gains = np.clip(value + change, 0.0, 1.0) / value
    return np.concatenate([[1.0], gains]).astype(np.float32)
