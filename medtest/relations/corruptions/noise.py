"""Gaussian, shot and speckle noise: ImageNet-C's strengths as levels, ImageNet-P's in sequences.

Values are independent for every pixel, colour and frame. Noise in sequences is not motion, so every frame after the
first has the same strength and the difficulty multiplies the standard deviation. Pixel values are in [0, 1] in the
published constants. Results are rounded to the nearest grey level (the published code truncates, which darkens by half
a level).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.core.plugins import PartSettings
from medtest.relations.corruptions.base import Corruption, CorruptionSettings, FrameAt
from medtest.relations.corruptions.random_fields import normal_quantiles, photon_counts, random_words
from medtest.relations.levels import Level, noise_seed, number

WHITE = 255.0


class CorruptionSigmaLevel(Level):
    """One severity.

    Attributes:
        sigma: Standard deviation of the noise as a fraction of white, or of the factor (speckle).
    """

    sigma: float = Field(gt=0.0, le=4.0)


class SigmaSequence(PartSettings):
    """Noise of sequences.

    Attributes:
        sigma: Standard deviation at difficulty 1, with white at 1.
    """

    sigma: float = Field(gt=0.0, le=1.0)


SigmaSettings = CorruptionSettings[CorruptionSigmaLevel, SigmaSequence]


class NoiseCorruption(Corruption):
    """Base class of the noise types."""

    group: ClassVar[str] = "noise"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})
    begins_clean: ClassVar[bool] = True
    grain: ClassVar[bool] = True


class _NormalNoise(NoiseCorruption):
    Settings = SigmaSettings

    def at_level(self, level: CorruptionSigmaLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the standard deviation and draw the noise seed."""
        return {"sigma": level.sigma, "noise_seed": noise_seed(rng)}

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return d times the published standard deviation and draw the frame's noise seed."""
        sigma = self.settings.sequence.sigma * frame.difficulty
        return {"sigma": sigma, "noise_seed": noise_seed(rng), "scale": sigma}


def _words(image: Image, params: Params) -> NDArray[np.uint16]:
    return random_words(int(number(params, "noise_seed")), image.size).reshape(image.shape)


class CorruptionGaussianNoise(_NormalNoise):
    """Additive white Gaussian noise: y = x + σ n (ImageNet-C ``gaussian_noise``; σ = 0.03 d in sequences)."""

    scale_unit: ClassVar[str] = "standard deviation of the noise, white = 1"

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Add whole grey levels; since pixels are integers, rounding the noise equals rounding the sum."""
        noise = np.take(_whole_levels(number(params, "sigma")), _words(seed.image, params))
        return np.asarray(cv2.add(seed.image, noise, dtype=cv2.CV_8U))


@lru_cache(maxsize=8)
def _whole_levels(sigma: float) -> NDArray[np.int16]:
    """Return the noise of each 16-bit integer in whole grey levels; the last strengths are cached (128 KB each)."""
    return np.rint(WHITE * sigma * normal_quantiles()).astype(np.int16)


class CorruptionSpeckleNoise(_NormalNoise):
    """Multiplicative noise: y = x + x σ n (ImageNet-C ``speckle_noise``; σ = 0.05 d in sequences)."""

    scale_unit: ClassVar[str] = "standard deviation as a fraction of the signal"

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Multiply in float32, round and clip in one pass."""
        factors = np.take(_factors(number(params, "sigma")), _words(seed.image, params))
        return np.asarray(cv2.multiply(seed.image, factors, dtype=cv2.CV_8U))


@lru_cache(maxsize=8)
def _factors(sigma: float) -> NDArray[np.float32]:
    return (1.0 + sigma * normal_quantiles()).astype(np.float32)


class PhotonLevel(Level):
    """One severity.

    Attributes:
        photons: Expected photons of a white pixel.
    """

    photons: float = Field(ge=1.0, le=10_000.0)

    @property
    def scale(self) -> float:
        """Standard deviation of a white pixel, white = 1."""
        return float(self.photons**-0.5)


class PhotonSequence(PartSettings):
    """Noise of sequences.

    Attributes:
        photons: Expected photons of a white pixel at difficulty 1.
    """

    photons: float = Field(ge=25.0, le=10_000.0)


ShotNoiseSettings = CorruptionSettings[PhotonLevel, PhotonSequence]


class ShotNoise(NoiseCorruption):
    """Photon noise: y = Poisson(λ x) / λ (ImageNet-C ``shot_noise``; λ = 300 / d² in sequences)."""

    Settings = ShotNoiseSettings
    scale_unit: ClassVar[str] = "standard deviation of a white pixel, white = 1"

    def at_level(self, level: PhotonLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the expected photons and draw the noise seed."""
        return {"photons": level.photons, "noise_seed": noise_seed(rng)}

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the expected photons, divided by d², so that the standard deviation grows with d."""
        photons = self.settings.sequence.photons / frame.difficulty**2
        return {"photons": photons, "noise_seed": noise_seed(rng), "scale": photons**-0.5}

    def counts(self, image: Image, params: Params) -> NDArray[np.uint16]:
        """Return the photon count of every value of a picture."""
        return photon_counts(image, number(params, "photons"), int(number(params, "noise_seed")))

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Draw photon counts and map them to grey levels."""
        counts = self.counts(seed.image, params)
        return np.take(_grey_levels(number(params, "photons")), counts, mode="clip")


@lru_cache(maxsize=8)
def _grey_levels(photons: float) -> NDArray[np.uint8]:
    """Return the grey level of each count up to the first white one."""
    counts = np.arange(int(photons) + 2)
    levels: NDArray[np.uint8] = np.minimum(np.rint(counts * (WHITE / photons)), WHITE).astype(np.uint8)
    return levels
