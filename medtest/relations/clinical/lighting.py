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
from typing import Any, ClassVar, Literal, Self

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from medtest.core.cases import FollowUp, Image, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.plugins import PartSettings
from medtest.relations.base import PUBLISHED_SEVERITY, Relation
from medtest.relations.levels import Level, PublishedRanges, RangedSettings, number

LUMA = np.array([0.2989, 0.587, 0.114])
"""Luma weights of torchvision's ``rgb_to_grayscale`` (ITU-R BT.601, as it rounds them)."""

ROUNDING = -0.25
"""Offset added before rounding, half way between torchvision's float path (exact) and its uint8 path (truncating).

Both are then within one grey level; the identity stays exact.
"""

JITTER = 0.05
"""In mode ``levels`` each distance from 1 is multiplied by a draw from [1 − JITTER, 1 + JITTER], so repeats differ."""
ERASED = 1.5
"""Standard deviation in grey levels below which lesion and surroundings are indistinguishable."""
COLOURS_LOOKED_AT = 1500
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


def mean_luma(seed: PreparedSeed) -> float:
    """Return the mean luma of the whole image, including the frame as in torchvision, in grey levels; cached."""

    def measured() -> float:
        return float(sum(map(operator.mul, cv2.mean(seed.image)[:3], LUMA.tolist())))

    return seed.memo("lighting.mean_luma", measured)


def recolour(seed: PreparedSeed, matrix: NDArray[np.float32]) -> Image:
    """Apply a 3×4 affine map to the colours of the field; the black frame keeps its bytes."""
    image = cv2.transform(seed.image, matrix)
    cv2.copyTo(seed.image, seed.frame.view(np.uint8), image)
    return image


def _erases_lesion(seed: PreparedSeed, matrix: NDArray[np.float32]) -> bool:
    """Return True if lesion and surroundings, which differ in the source, would become one colour."""
    before = seed.memo("lighting.lesion_colours", lambda: _lesion_colours(seed))
    if before is None or _spread(before) < ERASED:
        return False
    return _spread(cv2.transform(before, matrix)) < ERASED


def _spread(colours: Image) -> float:
    """Return the largest of the three channels' standard deviations."""
    return float(cv2.meanStdDev(colours)[1].max())


def _lesion_colours(seed: PreparedSeed) -> Image | None:
    """Return at most some thousand colours of the lesion and a rim around it, uint8 N×1×3; None without lesion."""
    if seed.mask is None or not seed.mask.any():
        return None
    side = 2 * max(1, seed.height // 32) + 1
    grown = cv2.dilate(seed.mask.view(np.uint8), np.ones((side, side), np.uint8)).view(np.bool_)
    colours = seed.image[np.logical_and(grown, np.logical_not(seed.frame))]
    if len(colours) == 0:
        return None
    return np.ascontiguousarray(colours[:: len(colours) // COLOURS_LOOKED_AT + 1, None, :])


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


class _Exposure(Relation):
    group: ClassVar[str] = "lighting"
    effects: ClassVar[frozenset[str]] = frozenset({"relight"})
    scale_unit: ClassVar[str] = "mean distance of brightness, contrast and saturation factors from 1"
    published_status: ClassVar[str] = "assumed"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw brightness, contrast and saturation factors: near the level's, or a common one in published mode.

        Raises:
            NotApplicable: The lesion and its surroundings would become uniform.
        """
        if severity == PUBLISHED_SEVERITY:
            factor = self._published_factor(rng)
            factors, scale = [factor, factor, factor], abs(factor - 1.0)
        else:
            level: ExposureLevel = self.settings.levels[severity]
            jitter = rng.uniform(1.0 - JITTER, 1.0 + JITTER, size=3)
            factors = [1.0 + (f - 1.0) * float(j) for f, j in zip(level.factors, jitter, strict=True)]
            scale = level.scale
        params = {**dict(zip(FACTORS, factors, strict=True)), "scale": scale}
        if _erases_lesion(seed, self._matrix(seed, params)):
            raise NotApplicable("at this exposure the lesion would be invisible")
        return params

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Change the exposure of the field in one affine step."""
        return FollowUp(image=recolour(seed, self._matrix(seed, params)), params=params, scale=number(params, "scale"))

    def _matrix(self, seed: PreparedSeed, params: Params) -> NDArray[np.float32]:
        return exposure_matrix(**{name: number(params, name) for name in FACTORS}, mean_luma=mean_luma(seed))

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
    """Over-exposure, as if the light were too near to the tissue (report 3.2.1, MR1-1)."""

    Settings = SaturationSettings


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
    """Fraction cut in published mode: the report says "approximately half"."""

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


class WhiteBalance(Relation):
    """Green or purple cast, as from a wrong white balance (report 3.2.3, MR1-3)."""

    Settings = WhiteBalanceSettings
    group: ClassVar[str] = "lighting"
    effects: ClassVar[frozenset[str]] = frozenset({"recolour"})
    scale_unit: ClassVar[str] = "fraction taken from the cut channels"
    published_status: ClassVar[str] = "report"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the cut and, if the variant leaves a choice, the tint."""
        settings: WhiteBalanceSettings = self.settings
        published = severity == PUBLISHED_SEVERITY
        tint: str = settings.variant
        if tint == "both":
            if published:
                tint = "green" if rng.random() < 0.5 else "purple_report"
            else:
                tint = _own_tint(seed)
        if published:
            cut = float(rng.uniform(settings.published.low, settings.published.high))
            return {"tint": tint, "cut": cut, "scale": cut}
        level = settings.levels[severity]
        return {"tint": tint, "cut": level.cut * float(rng.uniform(1.0 - JITTER, 1.0 + JITTER)), "scale": level.scale}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Multiply the cut channels of the field by 1 − cut."""
        gain = 1.0 - number(params, "cut")
        red, green, blue = (gain if is_cut else 1.0 for is_cut in CHANNELS_CUT[str(params["tint"])])
        image = recolour(seed, gains_matrix((red, green, blue)))
        return FollowUp(image=image, params=params, scale=number(params, "scale"))
