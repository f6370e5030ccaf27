"""Spatter: drops of water or splashes of mud on the lens (ImageNet-C and ImageNet-P ``spatter``)."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import cv2
import numpy as np
from pydantic import Field

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.core.recent import last_of
from medtest.relations.corruptions.base import Corruption, CorruptionSettings, FrameAt
from medtest.relations.corruptions.layers import Layer, fitted, grid_of, normal_layer, smoothed
from medtest.relations.levels import Level, noise_seed, number

WATER = (175.0, 238.0, 238.0)
"""Pale turquoise in red, green and blue."""
MUD = (63.0, 42.0, 20.0)
_LAYER = ("mean", "std", "sigma", "threshold")
_FALL = np.array([[0.7], [0.15], [0.1], [0.05]], np.float32)
"""Water that a pixel receives per step from two rows above to one below; it falls 1.5 rows on average."""
_RIM = 20.0
"""Distance in pixels from a drop's edge beyond which its shading is constant."""
_RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
"""Emboss filter with light from the upper left."""
_SOLID = 0.8
"""Mud below this share is removed."""


class SpatterLevel(Level):
    """Constants of spatter.

    Attributes:
        mean: Mean of the noise that forms drops.
        std: Its standard deviation.
        sigma: Standard deviation of the Gaussian over it, in pixels at 224.
        threshold: Noise below it is removed.
        kind: ``water``, which brightens, or ``mud``, which covers.
        strength: For water: largest share of its colour. For mud: standard deviation of its edge in pixels.
    """

    mean: float = Field(ge=0.0, le=1.0)
    std: float = Field(gt=0.0, le=1.0)
    sigma: float = Field(gt=0.0, le=50.0)
    threshold: float = Field(gt=0.0, lt=1.0)
    kind: Literal["water", "mud"]
    strength: float = Field(gt=0.0, le=10.0)

    @property
    def scale(self) -> float:
        """Expected share of the picture under drops, times the strength of water."""
        spread = self.std / (2.0 * math.sqrt(math.pi) * self.sigma)
        covered = 1.0 - NormalDist().cdf((self.threshold - self.mean) / spread)
        return covered * (self.strength if self.kind == "water" else 1.0)


class SpatterSequence(SpatterLevel):
    """Constants of sequences.

    Attributes:
        strength_step: Variant ``paper``: growth of the strength per frame.
    """

    strength_step: float = Field(gt=0.0, le=1.0)


SpatterSettings = CorruptionSettings[SpatterLevel, SpatterSequence]


class Spatter(Corruption):
    """Water adds its colour with an embossed shine; mud covers the picture with its own.

    A sequence has one layer of drops, which runs down d times per frame: each column is convolved with 0.05, 0.1, 0.15,
    0.7. ImageNet-P's frames have water of constant strength; in variant ``paper`` it grows by a tenth of that per step.
    """

    Settings = SpatterSettings
    group: ClassVar[str] = "weather"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})
    scale_unit: ClassVar[str] = "share of the picture under drops times their strength"

    def at_level(self, level: SpatterLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the level's constants and draw the layer seed."""
        return {**level.model_dump(mode="json"), "unit": unit, "layer_seed": noise_seed(rng), "fallen": 0}

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the constants of the frame; the layer is shared by the sequence."""
        settings: SpatterSequence = self.settings.sequence
        constants = settings.model_dump(include=set(SpatterLevel.model_fields))
        scale = settings.scale
        if frame.paper:
            strength = settings.strength_step * frame.steps
            scale *= strength / settings.strength
            constants["strength"] = strength
        return constants | {
            "unit": frame.unit,
            "layer_seed": frame.shared,
            "fallen": frame.steps,
            "scale": scale,
        }

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Lay the drops over the picture."""
        drops = fallen_layer(seed, params)
        if params["kind"] == "mud":
            return _covered(seed.image, fitted(_mud(drops, params), seed))
        shine = fitted(shine_of(drops) * np.float32(number(params, "strength")), seed)
        red, other = shine * np.float32(WATER[0]), shine * np.float32(WATER[1])
        return np.asarray(cv2.add(seed.image, cv2.merge([red, other, other]), dtype=cv2.CV_8U))


def fallen_layer(seed: PreparedSeed, params: Params) -> Layer:
    """Return the layer after the stored number of steps down (``fallen``), on the grid; cached for the next frame."""
    shape, steps = grid_of(seed, params), int(number(params, "fallen"))
    key = (shape, number(params, "layer_seed"), *(params[name] for name in _LAYER))
    by_step = last_of(seed, "corruptions.drops", key, lambda: {0: _drops(shape, params)})
    start, latest = by_step[0], max(step for step in by_step if step <= steps)
    layer = by_step[latest]
    for _ in range(latest, steps):
        layer = run_down(layer)
    by_step.clear()
    by_step.update({0: start, steps: layer})
    return layer


def _drops(shape: tuple[int, int], params: Params) -> Layer:
    sigma = number(params, "sigma")
    # Smoothed noise varies more near replicated edges; without a margin drops would crowd there.
    margin = int(4.0 * sigma + 0.5)
    wide = smoothed(normal_layer((shape[0] + 2 * margin, shape[1] + 2 * margin), params), sigma)
    layer = wide[margin : margin + shape[0], margin : margin + shape[1]].copy()
    layer[layer < np.float32(number(params, "threshold"))] = 0.0
    return layer


def run_down(layer: Layer) -> Layer:
    """Return the layer one step later; water leaves at the lower edge and none enters at the upper one."""
    return np.asarray(cv2.filter2D(layer, -1, _FALL, anchor=(0, 2), borderType=cv2.BORDER_CONSTANT), dtype=np.float32)


def shine_of(drops: Layer) -> Layer:
    """Return the brightening by a layer of water, at most 1: height times the relief of its edges."""
    height = np.clip(drops * 255.0, 0.0, 255.0).astype(np.uint8)
    edges = cv2.Canny(height, 50, 150)
    distance = cv2.distanceTransform(cv2.bitwise_not(edges), cv2.DIST_L2, 5)
    distance = np.minimum(distance, _RIM)
    rim = cv2.equalizeHist(cv2.blur(distance, (3, 3)).astype(np.uint8))
    relief = cv2.blur(cv2.filter2D(rim, cv2.CV_8U, _RELIEF), (3, 3))
    shine: Layer = height * relief.astype(np.float32)
    largest = float(shine.max())
    return shine / np.float32(largest) if largest > 0.0 else shine


def _mud(drops: Layer, params: Params) -> Layer:
    share = smoothed((drops > np.float32(number(params, "threshold"))).astype(np.float32), number(params, "strength"))
    share[share < _SOLID] = 0.0
    return share


def _covered(image: Image, share: Layer) -> Image:
    transparency = np.float32(1.0) - share
    planes = []
    for plane, colour in zip(cv2.split(image), MUD, strict=True):
        mixed = cv2.multiply(plane, transparency, dtype=cv2.CV_32F)
        planes.append(cv2.convertScaleAbs(cv2.scaleAdd(share, colour, mixed)))
    return np.asarray(cv2.merge(planes))
