"""Over-exposure, under-exposure and wrong white balance (MedTest report, sections 3.2.1 to 3.2.3).

All three are one affine map of colours, applied in a single pass. Exposure uses the three blends of torchvision's
``adjust_brightness``, ``adjust_contrast`` and ``adjust_saturation``, in that order: with factors b, c, s, luma weights
w = (0.2989, 0.587, 0.114) and m the mean luma of the whole image,

    x → b·x,    x → c·x + (1 − c)·b·m,    x → s·x + (1 − s)·(w·x).

Each equals torchvision's within one grey level. The composed map does not clip between steps, so a highlight
driven over 255 by brightness still differs from a brighter one in the contrast step; torchvision clips three times.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.core.plugins import PartSettings
from medtest.core.recent import per_seed
from medtest.preparation.visibility import burns_lesion_out
from medtest.relations.base import PUBLISHED_SEVERITY
from medtest.relations.clinical.visible import VisibleRecolouring, interpolate, level_values
from medtest.relations.levels import Level, PublishedRanges, RangedSettings, number

LUMA = np.array([0.2989, 0.587, 0.114])
"""Luma weights of torchvision's ``rgb_to_grayscale`` (ITU-R BT.601, as it rounds them)."""

ROUNDING = -0.25
"""Offset added before rounding, half way between torchvision's float path (exact) and its uint8 path (truncating).

Both are then within one grey level; the identity stays exact.
"""

JITTER = 0.05
"""In mode ``levels`` each distance from 1 is multiplied by a draw from [1 − JITTER, 1 + JITTER], so repeats differ."""
FACTORS = ("brightness", "contrast", "saturation")


def exposure_matrix(*, brightness: float, contrast: float, saturation: float, mean_luma: float) -> NDArray[np.float32]:
    """Compose torchvision's three blends into one affine map.

    Args:
        brightness: Factor b ≥ 0.
        contrast: Factor c ≥ 0.
        saturation: Factor s ≥ 0.
        mean_luma: Mean luma of the image before the change, grey levels.

    Returns:
        float32 3×4: the matrix and, in its last column, the offset in grey levels.
    """
    grey = np.outer(np.ones(3), LUMA)
    matrix = brightness * contrast * (saturation * np.eye(3) + (1.0 - saturation) * grey)
    lift = (1.0 - contrast) * brightness * mean_luma
    offset = lift * (saturation + (1.0 - saturation) * float(LUMA.sum())) + ROUNDING
    return np.hstack([matrix, np.full((3, 1), offset)]).astype(np.float32)


def gains_matrix(gains: tuple[float, float, float]) -> NDArray[np.float32]:
    """Return the affine map that multiplies red, green and blue by their gains; float32 3×4."""
    return np.hstack([np.diag(gains), np.full((3, 1), ROUNDING)]).astype(np.float32)


@per_seed
def mean_luma(seed: PreparedSeed) -> float:
    """Return the mean luma of the whole image, including the frame as in torchvision, in grey levels."""
    return float(sum(map(operator.mul, cv2.mean(seed.image)[:3], LUMA.tolist())))


class ExposureLevel(Level):
    """Factors of one severity; 1 changes nothing.

    Attributes:
        brightness: Factor on all channels.
        contrast: Factor on the distance from the image's mean luma.
        saturation: Factor on the distance from each pixel's own luma.
    """

    brightness: float = Field(gt=0.0, le=2.5)
    contrast: float = Field(gt=0.0, le=2.5)
    saturation: float = Field(gt=0.0, le=1.7)

    @property
    def factors(self) -> tuple[float, float, float]:
        """Brightness, contrast, saturation."""
        return (self.brightness, self.contrast, self.saturation)

    @property
    def scale(self) -> float:
        """Mean distance of the three factors from 1."""
        return sum(abs(factor - 1.0) for factor in self.factors) / 3.0


class FactorRange(PartSettings):
    """Range of the single factor in published mode.

    Attributes:
        low: Smallest factor.
        high: Largest factor.
        biased: Probability that the factor is on the relation's side of 1 (above for over-exposure).
    """

    low: float = Field(gt=0.0, le=1.0)
    high: float = Field(ge=1.0, le=1.7)
    biased: float = Field(default=0.9, ge=0.0, le=1.0)


class ExposureSettings(RangedSettings[ExposureLevel]):
    """Settings of ``saturation`` and ``contrast``.

    Attributes:
        published: Range of the single factor used for all three blends. The report mentions such a range
            without figures, so these are ours.
    """

    rises: ClassVar[bool]

    published: FactorRange

    @model_validator(mode="after")
    def _check_side(self) -> Self:
        for severity, level in self.levels.items():
            if self.rises and min(level.factors) < 1.0:
                raise ValueError(f"level {severity}: over-exposure needs factors of 1 or more")
            if not self.rises and max(level.factors) > 1.0:
                raise ValueError(f"level {severity}: under-exposure needs factors of 1 or less")
        return self


class _Exposure(VisibleRecolouring):
    group: ClassVar[str] = "lighting"
    effects: ClassVar[frozenset[str]] = frozenset({"relight"})
    scale_unit: ClassVar[str] = "mean distance of brightness, contrast and saturation factors from 1"
    published_status: ClassVar[str] = "assumed"
    revision: ClassVar[int] = 2

    def between(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> Callable[[float], dict[str, Any]]:
        """Draw brightness, contrast and saturation factors: near the level's, or a common one in published mode."""
        if severity == PUBLISHED_SEVERITY:
            factor = self._published_factor(rng)
            published = {**dict.fromkeys(FACTORS, factor), "scale": abs(factor - 1.0)}
            return lambda share: published
        low, high = level_values(self.settings.levels, severity, 1.0)
        jitter = dict(zip(FACTORS, rng.uniform(1.0 - JITTER, 1.0 + JITTER, size=3).tolist(), strict=True))

        def parameters(share: float) -> dict[str, Any]:
            values = interpolate(low, high, share)
            factors = {name: 1.0 + (values[name] - 1.0) * jitter[name] for name in FACTORS}
            return {**factors, "scale": sum(abs(values[name] - 1.0) for name in FACTORS) / 3.0}

        return parameters

    def recolour(self, seed: PreparedSeed, params: Params) -> Callable[[Image], Image]:
        """Return the change of exposure as one affine step."""
        factors = {name: number(params, name) for name in FACTORS}
        matrix = exposure_matrix(**factors, mean_luma=mean_luma(seed))
        return lambda colours: np.asarray(cv2.transform(colours, matrix), np.uint8)

    def _published_factor(self, rng: np.random.Generator) -> float:
        bounds: FactorRange = self.settings.published
        above = (float(rng.random()) < bounds.biased) == self.settings.rises
        low, high = (1.0, bounds.high) if above else (bounds.low, 1.0)
        return float(rng.uniform(low, high))


class SaturationSettings(ExposureSettings):
    """Settings of ``saturation``: no factor of a level below 1."""

    rises: ClassVar[bool] = True


class ContrastSettings(ExposureSettings):
    """Settings of ``contrast``: no factor of a level above 1."""

    rises: ClassVar[bool] = False


class Saturation(_Exposure):
    """Over-exposure, as if the light were too near to the tissue (report 3.2.1, MR1-1).

    A level burns out at most 30 % of a lesion's area.
    """

    Settings = SaturationSettings

    def check(self, seed: PreparedSeed, params: Params) -> tuple[bool, Image | None]:
        """Return True if the lesions stay visible and are not burnt out, and no image."""
        if burns_lesion_out(seed, self.recolour(seed, params)):
            return False, None
        return super().check(seed, params)


class Contrast(_Exposure):
    """Under-exposure, as if the light were far or obstructed (report 3.2.2, MR1-2)."""

    Settings = ContrastSettings


Tint = Literal["green", "purple", "purple_report"]
Variant = Literal["green", "purple", "purple_report", "both"]
CHANNELS_CUT: dict[str, tuple[bool, bool, bool]] = {
    "green": (True, False, True),
    "purple": (False, True, False),
    "purple_report": (True, True, False),
}
"""Channels (red, green, blue) that each tint cuts."""


class WhiteBalanceLevel(Level):
    """Strength of the cut for one severity.

    Attributes:
        cut: Fraction by which the cut channels are reduced, in (0, 0.7].
    """

    cut: float = Field(gt=0.0, le=0.7)


class CutRange(PublishedRanges):
    """Fraction cut in published mode: the report says "approximately half".

    Attributes:
        low: Smallest fraction.
        high: Largest fraction.
    """

    low: float = Field(gt=0.0, le=0.7)
    high: float = Field(gt=0.0, le=0.7)


class WhiteBalanceSettings(RangedSettings[WhiteBalanceLevel]):
    """Settings of ``white_balance``.

    Attributes:
        variant: ``green`` (red and blue cut in proportion), ``purple`` (green cut), ``purple_report`` (red and green
            cut, as the report words its purple cast), ``both``: half of the images green, half purple, each the same
            at every severity, since the casts differ in strength and a severity curve must compare like with like; in
            published mode green or ``purple_report``, drawn for each case.
        published: Range of the cut in published mode.
    """

    variant: Variant = "both"
    published: CutRange


def _own_tint(seed: PreparedSeed) -> Tint:
    """Return green or purple, determined by the seed's address alone."""
    key = f"white_balance {seed.ref.dataset} {seed.ref.seed_id}".encode()
    return "green" if hashlib.sha256(key).digest()[0] % 2 else "purple"


class WhiteBalance(VisibleRecolouring):
    """Green or purple cast, as from a wrong white balance (report 3.2.3, MR1-3)."""

    Settings = WhiteBalanceSettings
    group: ClassVar[str] = "lighting"
    effects: ClassVar[frozenset[str]] = frozenset({"recolour"})
    scale_unit: ClassVar[str] = "fraction taken from the cut channels"
    published_status: ClassVar[str] = "report"
    revision: ClassVar[int] = 2

    def between(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> Callable[[float], dict[str, Any]]:
        """Draw the cut and, if the variant leaves a choice, the tint."""
        settings: WhiteBalanceSettings = self.settings
        is_published = severity == PUBLISHED_SEVERITY
        tint: str = settings.variant
        if tint == "both":
            if is_published:
                tint = "green" if rng.random() < 0.5 else "purple_report"
            else:
                tint = _own_tint(seed)
        if is_published:
            cut = float(rng.uniform(settings.published.low, settings.published.high))
            return lambda share: {"tint": tint, "cut": cut, "scale": cut}
        low, high = level_values(settings.levels, severity, 0.0)
        jitter = float(rng.uniform(1.0 - JITTER, 1.0 + JITTER))

        def parameters(share: float) -> dict[str, Any]:
            cut = interpolate(low, high, share)["cut"]
            return {"tint": tint, "cut": cut * jitter, "scale": cut}

        return parameters

    def recolour(self, seed: PreparedSeed, params: Params) -> Callable[[Image], Image]:
        """Return the multiplication of the cut channels by 1 − cut."""
        gain = 1.0 - number(params, "cut")
        red, green, blue = (gain if is_cut else 1.0 for is_cut in CHANNELS_CUT[str(params["tint"])])
        matrix = gains_matrix((red, green, blue))
        return lambda colours: np.asarray(cv2.transform(colours, matrix), np.uint8)
