"""Snow: moving flakes of thresholded noise over a whitened picture (ImageNet-C and ImageNet-P ``snow``)."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.core.recent import last_of, per_seed
from medtest.relations.corruptions.base import Corruption, CorruptionSettings, FrameAt
from medtest.relations.corruptions.layers import Layer, fitted, grid_of, zoomed_layer
from medtest.relations.corruptions.line_filter import motion_blur
from medtest.relations.levels import Level, noise_seed, number

WHITE = 255.0
_LAYER = ("mean", "std", "zoom", "threshold")


class SnowLevel(Level):
    """Constants of snow.

    Attributes:
        mean: Mean of the noise that forms flakes, white = 1.
        std: Its standard deviation.
        zoom: Enlargement of the noise: size of a flake in pixels at 224.
        threshold: Noise below it is removed.
        radius: Radius of the flakes' motion blur in pixels at 224.
        sigma: Its standard deviation in pixels at 224.
        mix: Share of the original picture; the rest is whitened.
    """

    mean: float = Field(ge=0.0, le=1.0)
    std: float = Field(gt=0.0, le=1.0)
    zoom: float = Field(ge=1.0, le=50.0)
    threshold: float = Field(gt=0.0, lt=1.0)
    radius: float = Field(gt=0.0, le=100.0)
    sigma: float = Field(gt=0.0, le=100.0)
    mix: float = Field(gt=0.0, lt=1.0)

    @property
    def scale(self) -> float:
        """Amount of white added: the whitened share plus the mean of the noise above its threshold."""
        normal = NormalDist()
        above = (self.threshold - self.mean) / self.std
        flakes = self.mean * (1.0 - normal.cdf(above)) + self.std * normal.pdf(above)
        return 1.0 - self.mix + flakes


class SnowSequence(SnowLevel):
    """Constants of sequences.

    Attributes:
        first_angle: Direction of the flakes in the first frame in degrees.
        turn: Degrees from frame to frame.
        strength_step: Variant ``paper``: growth of whitening and flakes per step; 1 is ImageNet-P's strength.
    """

    first_angle: float
    turn: float
    strength_step: float = Field(gt=0.0, le=1.0)


class SnowSettings(CorruptionSettings[SnowLevel, SnowSequence]):
    """Settings of ``corruption_snow``.

    Attributes:
        low_angle: Least direction of levels in degrees, clockwise from the right.
        high_angle: Greatest direction of levels.
    """

    low_angle: float = -135.0
    high_angle: float = -45.0


class Snow(Corruption):
    """x' = (1 − w) x + w max(x, 1.5 g + 0.5) + l + l rotated by 180°, with g the luma and l the flakes.

    A sequence has one layer of flakes, whose direction turns by 4 d degrees per frame. ImageNet-P's frames have snow of
    constant strength and none is clean; in variant ``paper`` whitening and flakes grow by a tenth of that per step.
    """

    Settings = SnowSettings
    group: ClassVar[str] = "weather"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})
    scale_unit: ClassVar[str] = "white added: whitened share plus mean of the flakes"

    def at_level(self, level: SnowLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the level's constants; draw the layer seed and the flakes' direction."""
        settings: SnowSettings = self.settings
        return {
            **level.model_dump(),
            "unit": unit,
            "layer_seed": noise_seed(rng),
            "angle": float(rng.uniform(settings.low_angle, settings.high_angle)),
            "strength": 1.0,
        }

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the constants of the frame; the layer is shared by the sequence."""
        constants: SnowSequence = self.settings.sequence
        strength = constants.strength_step * frame.steps if frame.paper else 1.0
        return {
            **constants.model_dump(include=set(SnowLevel.model_fields)),
            "unit": frame.unit,
            "layer_seed": frame.shared,
            "angle": constants.first_angle + constants.turn * frame.steps,
            "strength": strength,
            "scale": strength * constants.scale,
        }

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Whiten the picture and add the flakes."""
        strength = number(params, "strength")
        share = min((1.0 - number(params, "mix")) * strength, 1.0)
        white = _whitened(seed)
        flakes = fitted(moving_flakes(seed, params), seed) * np.float32(WHITE * strength)
        mixed = cv2.addWeighted(seed.image, 1.0 - share, white, share, 0.0, dtype=cv2.CV_32F)
        return np.asarray(cv2.add(mixed, cv2.merge([flakes] * 3), dtype=cv2.CV_8U))


def moving_flakes(seed: PreparedSeed, params: Params) -> Layer:
    """Return the moving flakes plus the same rotated by 180°, on the grid; float32, white = 1."""
    shape = grid_of(seed, params)
    key = (shape, number(params, "layer_seed"), *(params[name] for name in _LAYER))
    layer = last_of(seed, "corruptions.flakes", key, lambda: _flakes(shape, params))
    moving = motion_blur(
        layer, radius=number(params, "radius"), sigma=number(params, "sigma"), degrees=number(params, "angle")
    )
    return np.asarray(moving + cv2.flip(moving, -1), dtype=np.float32)


def _flakes(shape: tuple[int, int], params: Params) -> Layer:
    layer = zoomed_layer(shape, params)
    layer[layer < np.float32(number(params, "threshold"))] = 0.0
    return np.minimum(layer, np.float32(1.0), out=layer)


@per_seed
def _whitened(seed: PreparedSeed) -> NDArray[np.float32]:
    """Return max(x, 1.5 luma + half of white) for every value; float32, unclipped."""
    pixels = seed.image.astype(np.float32)
    light = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), dtype=np.float32)
    light = light * np.float32(1.5) + np.float32(WHITE / 2.0)
    return np.asarray(cv2.max(pixels, cv2.merge([light] * 3)), dtype=np.float32)
