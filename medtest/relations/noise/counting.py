"""Noise that depends on the signal or replaces it: Poisson, speckle, salt and pepper."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import Image, ImageSpec, Params
from medtest.relations.levels import Level, number
from medtest.relations.noise.base import Floats, Noise, NoiseSettings, as_float, normal


class PoissonLevel(Level):
    """One severity.

    Attributes:
        gain: Grey levels per photon, in the image's units or in grey levels of 255 (``units``). A picture
            of 255 grey levels has 255 / gain photons at white pixels.
    """

    gain: float = Field(gt=0.0, le=1e6)


PoissonNoiseSettings = NoiseSettings[PoissonLevel]


class PoissonNoise(Noise):
    """Photon noise: y = g · Poisson(x / g), mean x, variance g x; x is measured from the low end of the range."""

    Settings = PoissonNoiseSettings
    scale_unit: ClassVar[str] = "grey levels per photon"

    def disturbed(self, image: Image, spec: ImageSpec, params: Params, rng: np.random.Generator) -> Floats:
        """Draw photon counts."""
        gain = number(params, "gain") * self.unit(spec)
        signal = np.maximum(as_float(image).astype(np.float64) - spec.low, 0.0)
        return rng.poisson(signal / gain).astype(np.float64) * gain + spec.low


class SpeckleLevel(Level):
    """One severity.

    Attributes:
        sigma: Standard deviation of the factor, a fraction of the signal.
    """

    sigma: float = Field(gt=0.0, le=10.0)


SpeckleNoiseSettings = NoiseSettings[SpeckleLevel]
"""``units`` has no effect, because the noise is a fraction of the signal."""


class SpeckleNoise(Noise):
    """Multiplicative noise: y = x + x σ n, n standard normal; x is measured from the low end of the range."""

    Settings = SpeckleNoiseSettings
    scale_unit: ClassVar[str] = "standard deviation as a fraction of the signal"

    def disturbed(self, image: Image, spec: ImageSpec, params: Params, rng: np.random.Generator) -> Floats:
        """Multiply the signal."""
        signal = as_float(image) - spec.low
        return signal * (1 + number(params, "sigma") * normal(rng, signal)) + spec.low


class SaltPepperLevel(Level):
    """One severity.

    Attributes:
        percent: Share of replaced pixels, in per cent; half become white, half black.
    """

    percent: float = Field(gt=0.0, le=100.0)


SaltPepperNoiseSettings = NoiseSettings[SaltPepperLevel]
"""``units`` and ``clip`` have no effect."""


class SaltPepperNoise(Noise):
    """Impulse noise: a share of pixels takes the low or the high end of the range, with all colours together."""

    Settings = SaltPepperNoiseSettings
    scale_unit: ClassVar[str] = "replaced pixels in per cent"

    def disturbed(self, image: Image, spec: ImageSpec, params: Params, rng: np.random.Generator) -> Floats:
        """Replace pixels."""
        pixels = as_float(image)
        share = number(params, "percent") / 100.0
        drawn = rng.random(spec.spatial(image.shape), dtype=np.float32)
        pixels[drawn < share / 2] = spec.low
        pixels[drawn >= 1 - share / 2] = spec.high
        return pixels
