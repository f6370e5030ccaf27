"""Additive noise: white Gaussian noise, and Rician noise of magnitude images in magnetic resonance imaging."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import Image, ImageSpec, Params
from medtest.relations.levels import Level, number
from medtest.relations.noise.base import Floats, Noise, NoiseSettings, as_float, normal


class SigmaLevel(Level):
    """One severity.

    Attributes:
        sigma: Standard deviation, in the image's units or in grey levels of 255 (``units``).
    """

    sigma: float = Field(gt=0.0, le=1e6)


SigmaSettings = NoiseSettings[SigmaLevel]


class GaussianNoise(Noise):
    """Additive white Gaussian noise: y = x + σ n, n standard normal, independent for every pixel and colour.

    Vacavant et al., "(α,σ)-robustness", section 3: σ = 5, 10, 15, 20, 25 on 8-bit images.
    """

    Settings = SigmaSettings
    scale_unit: ClassVar[str] = "standard deviation of the noise"

    def disturbed(self, image: Image, spec: ImageSpec, params: Params, rng: np.random.Generator) -> Floats:
        """Add the noise."""
        pixels = as_float(image)
        return pixels + number(params, "sigma") * self.unit(spec) * normal(rng, pixels)


class RicianNoise(Noise):
    """Rician noise: y = √((x + σ n₁)² + (σ n₂)²), the magnitude of a complex signal with noise in both channels.

    H. Gudbjartsson and S. Patz, "The Rician distribution of noisy MRI data", Magnetic Resonance in Medicine 34(6),
    1995, equation 1. At x = 0 it is Rayleigh noise of mean σ √(π/2); for x ≥ 3σ it is nearly Gaussian. The signal x
    is measured from the low end of the image's range.
    """

    Settings = SigmaSettings
    scale_unit: ClassVar[str] = "standard deviation in each channel"

    def disturbed(self, image: Image, spec: ImageSpec, params: Params, rng: np.random.Generator) -> Floats:
        """Add the noise to both channels and take the magnitude."""
        sigma = number(params, "sigma") * self.unit(spec)
        signal = as_float(image) - spec.low
        real = signal + sigma * normal(rng, signal)
        magnitude: Floats = np.hypot(real, sigma * normal(rng, signal))
        return magnitude + spec.low
