"""Rotate, scale, shear, tilt and translate: ImageNet-P's five geometric sequences, and levels made from them.

ImageNet-C has none of them. Their levels are ours: five equal steps up to the largest deviation that ImageNet-P's
sequences reach, with a random sign per case. Expected labels stay; an expected mask moves with the picture.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from medtest.core.cases import Effect, Image, Params, PreparedSeed
from medtest.core.plugins import wrong_at
from medtest.core.portable import product
from medtest.relations.corruptions.base import FRAMES, Corruption, CorruptionSettings, FrameAt, Sweep
from medtest.relations.corruptions.warp import Matrix, about_centre, image_matrix, shifted, warped, wide_picture
from medtest.relations.levels import Level, number

_STEEPEST = 75.0
"""Limit in degrees; shears and tilts degenerate at 90."""


class DegreesLevel(Level):
    """One severity.

    Attributes:
        degrees: Angle; its sign is drawn.
    """

    degrees: float = Field(gt=0.0, le=_STEEPEST)


RotateSettings = CorruptionSettings[DegreesLevel, Sweep]


class SteepSettings(CorruptionSettings[DegreesLevel, Sweep]):
    """Settings of ``corruption_shear`` and ``corruption_tilt``, whose angles stay below 75 degrees."""

    @model_validator(mode="after")
    def _check_reach(self) -> Self:
        if self.form == "sequence":
            count = self.frames or (31 if self.variant == "imagenet_p" else FRAMES)
            start = 0.0 if self.variant == "paper" else self.sequence.start
            reach = start + self.sequence.step * (count - 1) * max(self.severities)
            if max(abs(start), abs(reach)) > _STEEPEST:
                raise wrong_at(
                    "frames" if self.frames else "severities",
                    f"fewer: the last of {count} frames at difficulty {max(self.severities)} would have "
                    f"{reach:g} degrees, and {_STEEPEST:g} is the most",
                )
        return self


class ScaleLevel(Level):
    """One severity.

    Attributes:
        factor: Enlargement; below 1 the picture shrinks and gets a black border.
    """

    factor: float = Field(ge=0.05, le=5.0)

    @property
    def scale(self) -> float:
        """Deviation of the factor from 1."""
        return abs(self.factor - 1.0)


ScaleSettings = CorruptionSettings[ScaleLevel, Sweep]


class TranslateLevel(Level):
    """One severity.

    Attributes:
        pixels: Horizontal shift in pixels at 224; its sign is drawn.
    """

    pixels: float = Field(gt=0.0, le=200.0)


TranslateSettings = CorruptionSettings[TranslateLevel, Sweep]


class Geometric(Corruption):
    """Base class of geometric types; a subclass defines its parameter and its matrix."""

    group: ClassVar[str] = "geometric"
    effects: ClassVar[frozenset[str]] = frozenset({"move"})
    parameter: ClassVar[str]
    identity: ClassVar[float] = 0.0

    @abstractmethod
    def matrix(self, params: Params, shape: tuple[int, ...]) -> Matrix:
        """Return the 3×3 matrix that maps points (x, y) of a picture.

        Args:
            params: Parameters of the case.
            shape: Rows and columns of the warped picture; pixel centres are at integer coordinates.
        """

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the parameter of the frame."""
        value = frame.swept(self.settings.sequence, identity=self.identity)
        return {self.parameter: value, "scale": abs(value - self.identity)}

    def changed(self, seed: PreparedSeed, params: Params) -> Image:
        """Warp the picture."""
        return warped(seed, self.matrix(params, wide_picture(seed).shape))

    def effect(self, seed: PreparedSeed, params: Params) -> Effect:
        """Return the motion of an expected mask; labels stay."""
        matrix = image_matrix(seed, self.matrix(params, wide_picture(seed).shape))
        return Effect(kind="move", data={"matrix": matrix.tolist()})


class _Angled(Geometric):
    parameter: ClassVar[str] = "degrees"

    def at_level(self, level: DegreesLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the angle with a random sign."""
        return {"degrees": level.degrees * _side(rng)}


def _side(rng: np.random.Generator) -> float:
    return 1.0 if rng.random() < 0.5 else -1.0


class Rotate(_Angled):
    """Rotation about the centre, clockwise; released: −15 + i degrees."""

    Settings = RotateSettings
    scale_unit: ClassVar[str] = "degrees"

    def matrix(self, params: Params, shape: tuple[int, ...]) -> Matrix:
        """Return the rotation about the centre."""
        angle = math.radians(number(params, "degrees"))
        cosine, sine = math.cos(angle), math.sin(angle)
        return about_centre(np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]]), shape)


class Shear(_Angled):
    """Horizontal shear about the centre: x' = x − y tan φ; released: φ = −15 + i degrees.

    This is torchvision's shear since version 0.4; before, y shrank by cos φ too (by 3 % at 15 degrees).
    """

    Settings = SteepSettings
    scale_unit: ClassVar[str] = "degrees"

    def matrix(self, params: Params, shape: tuple[int, ...]) -> Matrix:
        """Return the shear about the centre."""
        slope = -math.tan(math.radians(number(params, "degrees")))
        return about_centre(np.array([[1.0, slope, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), shape)


class Tilt(_Angled):
    """Rotation in space about the x and y axes by one angle, seen from a distance of the diagonal's length.

    The matrix is ImageNet-P's, with the centre at (w / 2, h / 2) and the focal length √(w² + h²); released: −15 + i
    degrees. ImageNet-P places the picture one pixel behind the axes (which shrinks it by 1 / f even at 0 degrees), as
    do the variants ``released`` and ``imagenet_p``; otherwise the depth is 0, so that 0 degrees is the identity.
    """

    Settings = SteepSettings
    scale_unit: ClassVar[str] = "degrees"

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the angle of the frame and the depth of the picture behind the axes."""
        return {**super().at_frame(frame, rng), "depth": 0.0 if frame.paper else 1.0}

    def matrix(self, params: Params, shape: tuple[int, ...]) -> Matrix:
        """Return the homography of a plane turned about x and y, ``depth`` pixels behind the axes."""
        height, width = shape[:2]
        focal = math.hypot(width, height)
        angle = math.radians(number(params, "degrees"))
        depth = number(params, "depth") if "depth" in params else 0.0
        cosine, sine = math.cos(angle), math.sin(angle)
        about_x = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
        about_y = np.array([[cosine, 0.0, -sine], [0.0, 1.0, 0.0], [sine, 0.0, cosine]])
        turn = product(about_x, about_y)
        away = np.array([0.0, 0.0, focal]) + depth * turn[:, 2]
        placed = product(np.column_stack([turn[:, :2], away]), shifted(-width / 2.0, -height / 2.0))
        camera = np.array([[focal, 0.0, width / 2.0], [0.0, focal, height / 2.0], [0.0, 0.0, 1.0]])
        return product(camera, placed)


class Scale(Geometric):
    """Enlargement about the centre; released: 0.40 + 0.025 i, which gives a black border."""

    Settings = ScaleSettings
    effects: ClassVar[frozenset[str]] = frozenset({"move", "resize"})
    scale_unit: ClassVar[str] = "departure of the factor from 1"
    parameter: ClassVar[str] = "factor"
    identity: ClassVar[float] = 1.0

    def at_level(self, level: ScaleLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the factor; nothing is drawn."""
        return {"factor": level.factor}

    def matrix(self, params: Params, shape: tuple[int, ...]) -> Matrix:
        """Return the enlargement about the centre."""
        return about_centre(np.diag([number(params, "factor"), number(params, "factor"), 1.0]), shape)


class Translate(Geometric):
    """Shift to the right; released: −20 + i pixels at 224."""

    Settings = TranslateSettings
    scale_unit: ClassVar[str] = "pixels at 224"
    parameter: ClassVar[str] = "pixels"
    full_frames: ClassVar[int] = 41

    def at_level(self, level: TranslateLevel, unit: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return the shift in pixels of the image with a random sign."""
        return {"pixels": level.pixels * _side(rng) * unit}

    def at_frame(self, frame: FrameAt, rng: np.random.Generator) -> dict[str, Any]:
        """Return the shift of the frame in pixels of the image."""
        pixels = frame.swept(self.settings.sequence, identity=0.0)
        return {"pixels": pixels * frame.unit, "scale": abs(pixels)}

    def matrix(self, params: Params, shape: tuple[int, ...]) -> Matrix:
        """Return the shift."""
        return shifted(number(params, "pixels"), 0.0)
