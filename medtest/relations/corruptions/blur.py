"""Gaussian blur, motion blur and zoom blur: ImageNet-C's constants as levels, ImageNet-P's formulas in sequences."""

from __future__ import annotations

from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Effect, Image, Params, PreparedSeed
from medtest.core.plugins import PartSettings
from medtest.relations.corruptions.base import Corruption, CorruptionSettings, FrameAt, Sweep
from medtest.relations.corruptions.layers import smoothed
from medtest.relations.corruptions.line_filter import line_taps, motion_blur
from medtest.relations.corruptions.warp import about_centre, image_matrix, shifted, warped, wide_picture
from medtest.relations.levels import Level, number

_UNBLURRED = 0.25
"""Largest σ in pixels that leaves 8-bit pictures unchanged: neighbours weigh 4 · 0.00033, a third of a level."""


class _Blur(Corruption):
    group: ClassVar[str] = "blur"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})


class CorruptionBlurLevel(Level):
    """One severity.

    Attributes:
        sigma: Standard deviation in pixels at 224.
    """

    sigma: float = Field(gt=0.0, le=50.0)


class CorruptionGaussianBlurSettings(CorruptionSettings[CorruptionBlurLevel, Sweep]):
    """Settings of ``corruption_gaussian_blur``.

    Attributes:
        truncate: Standard deviations at which the kernel ends, in levels (4 in ImageNet-C).
        truncate_sequence: The same in sequences (6 in ImageNet-P).
    """

    truncate: float = Field(default=4.0, gt=0.0, le=10.0)
    truncate_sequence: float = Field(default=6.0, gt=0.0, le=10.0)


class CorruptionGaussianBlur(_Blur):
    """Gaussian blur with replicated edges.

    In variant ``paper`` the standard deviation starts at 0.25 pixels, ImageNet-P's first value, which leaves an 8-bit
    picture unchanged.
    """

    Settings = CorruptionGaussianBlurSettings
    scale_unit: ClassVar[str] = "σ of the Gaussian, pixels at 224"

    def at_level(self, level: CorruptionBlurLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the standard deviation in pixels of the image; nothing is drawn."""
        return {"sigma": level.sigma * unit, "truncate": self.settings.truncate}

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the standard deviation of the frame."""
        scale = frame.swept(self.settings.sequence, identity=0.0)
        sigma = scale * frame.unit + (_UNBLURRED if frame.paper else 0.0)
        return {"sigma": sigma, "truncate": self.settings.truncate_sequence, "scale": scale}

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Blur in float32, because OpenCV's 8-bit path rounds the kernel to 256ths."""
        blurred = smoothed(seed.image.astype(np.float32), number(params, "sigma"), number(params, "truncate"))
        return np.asarray(cv2.convertScaleAbs(blurred))


class MotionBlurLevel(Level):
    """One severity.

    Attributes:
        radius: ImageMagick's radius in pixels at 224.
        sigma: Standard deviation of the half Gaussian in pixels at 224.
    """

    radius: float = Field(gt=0.0, le=100.0)
    sigma: float = Field(gt=0.0, le=100.0)

    @property
    def scale(self) -> float:
        """The standard deviation along the line."""
        return self.sigma


class MotionBlurSequence(PartSettings):
    """Constants of sequences.

    Attributes:
        radius: ImageNet-P's radius in pixels at 224.
        sigma: ImageNet-P's standard deviation in pixels at 224.
        first_angle: Direction of the first frame in degrees.
        turn: Degrees from frame to frame.
        radius_step: Variant ``paper``: growth of the radius per frame.
        sigma_step: Variant ``paper``: growth of the standard deviation per frame.
    """

    radius: float = Field(gt=0.0, le=100.0)
    sigma: float = Field(gt=0.0, le=100.0)
    first_angle: float
    turn: float
    radius_step: float = Field(gt=0.0, le=10.0)
    sigma_step: float = Field(gt=0.0, le=10.0)


class MotionBlurSettings(CorruptionSettings[MotionBlurLevel, MotionBlurSequence]):
    """Settings of ``corruption_motion_blur``.

    Attributes:
        angle: Directions are drawn from ±angle degrees, in levels and once per sequence of ``paper``.
    """

    angle: float = Field(default=45.0, ge=0.0, le=180.0)


class MotionBlur(_Blur):
    """Motion along a line (ImageMagick's, :mod:`medtest.relations.corruptions.line_filter`).

    ImageNet-P rotates a blur of constant strength, so no frame is clean. In variant ``paper`` the blur grows in a
    direction drawn for the sequence, reaching ImageNet-P's strength at the tenth step of difficulty 1.
    """

    Settings = MotionBlurSettings
    revision: ClassVar[int] = 2
    scale_unit: ClassVar[str] = "σ along the line, pixels at 224"

    def at_level(self, level: MotionBlurLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the blur of the level and draw its direction."""
        limit = self.settings.angle
        return {
            "radius": level.radius * unit,
            "sigma": level.sigma * unit,
            "angle": float(rng.uniform(-limit, limit)),
        }

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the blur of the frame."""
        constants: MotionBlurSequence = self.settings.sequence
        if frame.paper:
            limit = self.settings.angle
            angle = float(frame.generator().uniform(-limit, limit))
            radius, sigma = constants.radius_step * frame.steps, constants.sigma_step * frame.steps
        else:
            angle = constants.first_angle + constants.turn * frame.steps
            radius, sigma = constants.radius, constants.sigma
        return {"radius": radius * frame.unit, "sigma": sigma * frame.unit, "angle": angle, "scale": sigma}

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Blur along the line."""
        blurred = motion_blur(
            seed.image, radius=number(params, "radius"), sigma=number(params, "sigma"), degrees=number(params, "angle")
        )
        return np.asarray(cv2.convertScaleAbs(blurred))

    def effect(self, seed: PreparedSeed, params: Params) -> Effect:
        """Return the mean shift: the line begins at each pixel, so that the picture is blurred to one side."""
        offsets, weights = line_taps(number(params, "radius"), number(params, "sigma"), number(params, "angle"))
        down, right = (offsets * weights[:, None]).sum(axis=0)
        return Effect(kind="move", data={"matrix": shifted(-right, -down).tolist()})


class ZoomBlurLevel(Level):
    """One severity: the mean of the picture and of ``count`` enlargements 1, 1 + step, 1 + 2 step, ….

    Attributes:
        step: Step of the enlargement.
        count: Number of enlargements, the first of which is 1.
    """

    step: float = Field(gt=0.0, le=0.2)
    count: int = Field(ge=2, le=60)

    @property
    def scale(self) -> float:
        """The largest enlargement minus 1."""
        return self.step * (self.count - 1)


class ZoomBlurSequence(PartSettings):
    """Zoom blur of sequences.

    Attributes:
        step: Growth of the enlargement from frame to frame at difficulty 1.
    """

    step: float = Field(gt=0.0, le=0.02)


ZoomBlurSettings = CorruptionSettings[ZoomBlurLevel, ZoomBlurSequence]


class ZoomBlur(_Blur):
    """Mean of enlargements about the centre (bilinear); frame i of a sequence averages 1 + 0.004 d j, j ≤ i.

    The published levels enlarge a crop with whole-number sides, so their zooms are off by up to one per cent; these are
    exact.
    """

    Settings = ZoomBlurSettings
    revision: ClassVar[int] = 2
    begins_clean: ClassVar[bool] = True
    scale_unit: ClassVar[str] = "largest enlargement minus 1"

    def at_level(self, level: ZoomBlurLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the enlargements of the level; the original picture counts as one more."""
        return {"step": level.step, "count": level.count, "own": 1}

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the enlargements of the frame."""
        step = self.settings.sequence.step * frame.difficulty
        return {"step": step, "count": frame.index + 1, "own": 0, "scale": step * frame.index}

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Sum the enlargements, reusing the sum of an earlier frame of the sequence."""
        step, count, own = number(params, "step"), int(number(params, "count")), int(number(params, "own"))
        sums: dict[float, tuple[int, NDArray[np.float32]]] = seed.memo("corruptions.zooms", dict)
        summed, total = sums.get(step, (count + 1, seed.image))
        if summed > count:
            summed, total = 1, seed.image.astype(np.float32)
        for number_ in range(summed, count):
            # Sums of whole numbers below 2²⁴ are exact in float32, so the order of frames does not matter.
            factor = 1.0 + step * number_
            matrix = about_centre(np.diag([factor, factor, 1.0]), wide_picture(seed).shape)
            cv2.accumulate(warped(seed, matrix), total)
        sums.clear()
        sums[step] = count, total
        if not own:
            return np.asarray(cv2.convertScaleAbs(total, alpha=1.0 / count))
        mean = 1.0 / (count + own)
        return np.asarray(cv2.addWeighted(total, mean, seed.image, own * mean, 0.0, dtype=cv2.CV_8U))

    def effect(self, seed: PreparedSeed, params: Params) -> Effect:
        """Return the mean enlargement."""
        step, count, own = number(params, "step"), int(number(params, "count")), int(number(params, "own"))
        factor = 1.0 + step * (count * (count - 1) / 2) / (count + own)
        matrix = image_matrix(seed, about_centre(np.diag([factor, factor, 1.0]), wide_picture(seed).shape))
        return Effect(kind="move", data={"matrix": matrix.tolist()})
