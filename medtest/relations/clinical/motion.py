"""Motion blur (MedTest report, section 3.3.1, equation 2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from statistics import NormalDist
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.core.recent import per_seed
from medtest.relations.base import PUBLISHED_SEVERITY
from medtest.relations.clinical.visible import VisibleRelation, interpolate, level_values
from medtest.relations.levels import Level, PublishedRanges, RangedSettings, noise_seed, number

LARGEST_SIGMA = 15.0
LARGEST_KERNEL = 7
"""Largest odd side that equation 2's range gives: the odd integer nearest to 15 / 2."""
_MIDDLE = 128


class BlurLevel(Level):
    """One severity.

    Attributes:
        sigma: Spatial constant of the Gaussian in pixels, in (0, 15].
        noise: Standard deviation of the noise in grey levels, in [2, 10].
    """

    sigma: float = Field(gt=0.0, le=LARGEST_SIGMA)
    noise: float = Field(ge=2.0, le=10.0)

    @property
    def scale(self) -> float:
        """The spatial constant in pixels."""
        return self.sigma


class BlurRange(PublishedRanges):
    """Published mode: σ from (0, ``sigma``], noise from [``noise_low``, ``noise_high``], uniformly.

    Attributes:
        sigma: Upper end of σ, pixels.
        noise_low: Least standard deviation of the noise, grey levels.
        noise_high: Greatest standard deviation of the noise, grey levels.
    """

    sigma: float = Field(gt=0.0, le=LARGEST_SIGMA)
    noise_low: float = Field(ge=2.0, le=10.0)
    noise_high: float = Field(ge=2.0, le=10.0)

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return σ and the strength of the noise."""
        return {"sigma": self.sigma * (1.0 - float(rng.random())), **super().draw(rng)}


class BlurSettings(RangedSettings[BlurLevel]):
    """Settings of ``blur``.

    Attributes:
        published: The report's range of σ; the range of the noise is ours, as the report gives none.
    """

    published: BlurRange


class Blur(VisibleRelation):
    """Blur by camera or tissue motion: x' = x · GB(r, σ) + n (report equation 2).

    The Gaussian is cut to a kernel whose odd sides are drawn separately for width and height in [σ/3, σ/2]: the odd
    integer of 3 or more nearest to the draw, because two fifths of that range hold no odd integer. To keep the frame
    out of the field, a rim of it is filled with the mean of the neighbouring field before blurring and restored
    afterwards.
    """

    Settings = BlurSettings
    group: ClassVar[str] = "motion"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})
    scale_unit: ClassVar[str] = "σ of the Gaussian in pixels"
    published_status: ClassVar[str] = "report"
    revision: ClassVar[int] = 2

    def between(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> Callable[[float], dict[str, Any]]:
        """Draw the kernel's sides and the noise seed; in published mode also σ and the noise strength."""
        level: BlurLevel = self.settings.level(severity, rng)
        high = level.model_dump()
        low = high if severity == PUBLISHED_SEVERITY else level_values(self.settings.levels, severity, 0.0)[0]
        wide, tall = float(rng.random()), float(rng.random())
        seed_of_noise = noise_seed(rng)

        def parameters(share: float) -> dict[str, Any]:
            values = interpolate(low, high, share)
            sigma = values["sigma"]
            least, most = sigma / 3.0, sigma / 2.0
            return {
                "sigma": sigma,
                "kernel_width": nearest_odd(least + (most - least) * wide),
                "kernel_height": nearest_odd(least + (most - least) * tall),
                "noise": values["noise"],
                "noise_seed": seed_of_noise,
                "scale": sigma,
            }

        return parameters

    def render(self, seed: PreparedSeed, params: Params) -> Image:
        """Blur the field, add the noise and restore the frame."""
        sigma = number(params, "sigma")
        kernel = (int(number(params, "kernel_width")), int(number(params, "kernel_height")))
        image = cv2.GaussianBlur(
            frame_filled(seed), kernel, sigmaX=sigma, sigmaY=sigma, borderType=cv2.BORDER_REPLICATE
        )
        image = add_noise(image, std=number(params, "noise"), noise_seed=int(number(params, "noise_seed")))
        cv2.copyTo(seed.image, seed.frame.view(np.uint8), image)
        return image


def nearest_odd(value: float) -> int:
    """Return the odd integer of 3 or more nearest to ``value`` (the larger of two)."""
    return max(3, 2 * int(value // 2.0) + 1)


def noise_table(std: float) -> NDArray[np.uint8]:
    """Return the noise value of each of the 256 random bytes, plus 128.

    The table holds the normal distribution's quantiles in the middle of 256 equal steps, scaled to the requested
    variance and rounded to grey levels (minus the variance that rounding adds). The tails end at 2.9 σ.

    Args:
        std: Standard deviation in grey levels, in [1, 40].

    Returns:
        uint8, 256 values, ascending.
    """
    spread = float(np.sqrt(max(std * std - 1.0 / 12.0, 0.0)))
    table: NDArray[np.uint8] = np.rint(_unit_quantiles() * spread + _MIDDLE).astype(np.uint8)
    return table


@cache
def _unit_quantiles() -> NDArray[np.float64]:
    normal = NormalDist()
    quantiles = np.array([normal.inv_cdf((i + 0.5) / 256.0) for i in range(256)])
    unit: NDArray[np.float64] = quantiles / quantiles.std()
    unit.flags.writeable = False
    return unit


def add_noise(image: Image, *, std: float, noise_seed: int) -> Image:
    """Return the image plus independent Gaussian noise on every value, clipped to 0–255.

    Args:
        image: uint8, any shape.
        std: Standard deviation in grey levels, in [1, 40].
        noise_seed: Seed of SFC64, whose raw 64-bit words give one byte per value.
    """
    words = np.random.SFC64(noise_seed).random_raw(-(-image.size // 8)).astype("<u8", copy=False)
    draws = words.view(np.uint8)[: image.size].reshape(image.shape)
    noise = cv2.LUT(draws, noise_table(std))
    noisy: Image = cv2.addWeighted(image, 1.0, noise, 1.0, -float(_MIDDLE))
    return noisy


@per_seed
def frame_filled(seed: PreparedSeed) -> Image:
    """Return the image with the rim of the frame, as wide as the widest kernel's reach, filled from the field.

    Each pixel of the rim gets the mean of the field pixels in the largest kernel around it; uint8 H×W×3, read-only.
    """
    if not seed.frame.any():
        return seed.image
    side = (LARGEST_KERNEL, LARGEST_KERNEL)
    field = np.logical_not(seed.frame).view(np.uint8)
    weight = cv2.boxFilter(field, cv2.CV_32S, side, normalize=False, borderType=cv2.BORDER_CONSTANT)
    rim = np.flatnonzero(np.logical_and(seed.frame, weight > 0))
    light = cv2.bitwise_and(seed.image, seed.image, mask=field)
    total = cv2.boxFilter(light, cv2.CV_32S, side, normalize=False, borderType=cv2.BORDER_CONSTANT)
    filled = seed.image.copy()
    mean = total.reshape(-1, 3).take(rim, axis=0) / weight.ravel().take(rim)[:, None]
    filled.reshape(-1, 3)[rim] = np.rint(mean).astype(np.uint8)
    filled.flags.writeable = False
    return filled
