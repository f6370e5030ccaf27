"""Smooth distortions of the field: the lens of a wide-angle endoscope, soft tissue, breathing.

Each relation computes a field of displacements (:mod:`medtest.core.oracles.warps`), by which image and expected mask
move alike. Displacements fall to 0 towards the black frame, which stays as it is and is never drawn into the field.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import FollowUp, Image, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.oracles.moves import moved_image
from medtest.core.oracles.warps import warp_effect
from medtest.core.recent import per_seed
from medtest.relations.base import Relation
from medtest.relations.levels import Level, LeveledSettings, number

Floats = NDArray[np.float32]
_TAPER = 0.12
"""Width of the fall to 0 beside the black frame, as fraction of the image's height."""
_CONTROL_POINTS = 5
"""Spans of ``elastic``'s splines along the shorter side; a wave is about half of it long."""


class LensLevel(Level):
    """One severity.

    Attributes:
        barrel: Radial coefficient k: a point at radius r of the source lies where r = r' (1 + k r'²) / (1 + k), with
            radius 1 in the corners. Straight lines bend outwards.
    """

    barrel: float = Field(gt=0.0, le=1.0)


class ShiftLevel(Level):
    """One severity.

    Attributes:
        shift: Largest displacement, as fraction of the image's height.
    """

    shift: float = Field(gt=0.0, le=0.12)


LensSettings, ShiftSettings = LeveledSettings[LensLevel], LeveledSettings[ShiftLevel]


class Warp(Relation):
    """Base class of smooth distortions; a subclass computes the displacements.

    A field that would fold the picture is not applied: the case is SKIP.
    """

    group: ClassVar[str] = "geometric"
    effects: ClassVar[frozenset[str]] = frozenset({"move", "resize"})
    nested: ClassVar[bool] = True

    @abstractmethod
    def displacements(self, seed: PreparedSeed, params: Params) -> Floats:
        """Return the displacements without a black frame, float32 H×W×2 in pixels."""

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Warp the image.

        Raises:
            NotApplicable: The field folds the picture.
        """
        field = self.displacements(seed, params) * _taper(seed)[:, :, None]
        try:
            effect = warp_effect(field)
        except ValueError as error:
            raise NotApplicable(str(error)) from None
        image = moved_image(_unframed(seed), effect)
        image[seed.frame] = seed.image[seed.frame]
        return FollowUp(image=image, params=params, scale=number(params, "scale"), effect=effect)


class LensDistortion(Warp):
    """Barrel distortion about the centre, or about a point up to 4 % of the height beside it."""

    Settings = LensSettings
    scale_unit: ClassVar[str] = "radial coefficient"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the optical centre."""
        barrel = self.settings.levels[severity].barrel
        right, down = (round(float(rng.uniform(-0.04, 0.04)), 4) for _ in range(2))
        return {"right": right, "down": down, "barrel": barrel, "scale": barrel}

    def displacements(self, seed: PreparedSeed, params: Params) -> Floats:
        """Return the radial displacements."""
        x, y = _grid(seed)
        x = x - np.float32(number(params, "right") * seed.height)
        y = y - np.float32(number(params, "down") * seed.height)
        squared = (x * x + y * y) * (4.0 / (seed.width * seed.width + seed.height * seed.height))
        barrel = number(params, "barrel")
        # Beyond radius 1, which exists with a centre that is off the middle, the picture stays as it is.
        change = np.minimum((1.0 + barrel * squared) / (1.0 + barrel), 1.0) - 1.0
        return np.asarray(cv2.merge([x * change, y * change]), dtype=np.float32)


class Elastic(Warp):
    """Smooth random deformation: cubic B-splines between random control points."""

    Settings = ShiftSettings
    scale_unit: ClassVar[str] = "largest displacement (image height = 1)"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the displacements of the control points, relative to the largest."""
        shift = self.settings.levels[severity].shift
        rows, columns = _control_points(seed)
        points = rng.uniform(-1.0, 1.0, size=(rows, columns, 2))
        return {"points": np.round(points, 3).tolist(), "shift": shift, "scale": shift}

    def displacements(self, seed: PreparedSeed, params: Params) -> Floats:
        """Return the displacements, scaled so that the largest is the level's."""
        points = np.asarray(params["points"], dtype=np.float32)
        field = _spline(_spline(points, seed.height, 0), seed.width, 1)
        largest = math.sqrt(float((field[..., 0] ** 2 + field[..., 1] ** 2).max()))
        factor = number(params, "shift") * seed.height / max(largest, 1e-9)
        return np.asarray(field * factor, dtype=np.float32)


class Breathing(Warp):
    """Shift of the wall with the patient's breath: largest inside the field, 0 at its rim, in one direction."""

    Settings = ShiftSettings
    scale_unit: ClassVar[str] = "largest displacement (image height = 1)"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the direction and the middle of the motion."""
        shift = self.settings.levels[severity].shift
        angle = round(float(rng.uniform(0.0, 360.0)), 1)
        right, down = (round(float(rng.uniform(-0.1, 0.1)), 3) for _ in range(2))
        return {"angle": angle, "right": right, "down": down, "shift": shift, "scale": shift}

    def displacements(self, seed: PreparedSeed, params: Params) -> Floats:
        """Return the displacements: (1 − ρ²)² along the direction, with ρ = 1 on the largest ellipse in the image."""
        x, y = _grid(seed)
        right, down = number(params, "right"), number(params, "down")
        across = (x / (seed.width / 2.0) - right) / (1.0 + abs(right))
        along = (y / (seed.height / 2.0) - down) / (1.0 + abs(down))
        fall = np.maximum(1.0 - across * across - along * along, 0.0)
        size = number(params, "shift") * seed.height * (fall * fall)
        angle = math.radians(number(params, "angle"))
        return np.asarray(cv2.merge([-size * math.cos(angle), -size * math.sin(angle)]), dtype=np.float32)


def _grid(seed: PreparedSeed) -> tuple[Floats, Floats]:
    """Return columns and rows from the image's centre in pixels, 1×W and H×1."""
    x = np.arange(seed.width, dtype=np.float32) - np.float32((seed.width - 1) / 2.0)
    y = np.arange(seed.height, dtype=np.float32) - np.float32((seed.height - 1) / 2.0)
    return x[None, :], y[:, None]


def _control_points(seed: PreparedSeed) -> tuple[int, int]:
    spacing = min(seed.height, seed.width) / _CONTROL_POINTS
    return math.ceil(seed.height / spacing) + 3, math.ceil(seed.width / spacing) + 3


def _spline(points: Floats, size: int, axis: int) -> Floats:
    """Return uniform cubic B-splines through an axis of control points, at ``size`` equal steps."""
    spans = points.shape[axis] - 3
    place = (np.arange(size, dtype=np.float64) + 0.5) * (spans / size)
    start = np.minimum(place.astype(np.int64), spans - 1)
    t = (place - start).astype(np.float32)
    weights = (
        (1.0 - t) * (1.0 - t) * (1.0 - t) / 6.0,
        (4.0 - 6.0 * t * t + 3.0 * t * t * t) / 6.0,
        (1.0 + 3.0 * t + 3.0 * t * t - 3.0 * t * t * t) / 6.0,
        t * t * t / 6.0,
    )
    shape = [1] * points.ndim
    shape[axis] = size
    # Summed term by term, because the sum in a matrix product depends on the processor.
    total = np.zeros_like(np.take(points, start, axis=axis))
    for step, weight in enumerate(weights):
        total += np.take(points, start + step, axis=axis) * weight.reshape(shape)
    return np.asarray(total, dtype=np.float32)


@per_seed
def _taper(seed: PreparedSeed) -> NDArray[np.float32]:
    """Return the factor of displacements, float32 H×W: 0 on the black frame, 1 away from it."""
    if not seed.frame.any():
        return np.ones(seed.frame.shape, np.float32)
    inside = np.ascontiguousarray(~seed.frame).view(np.uint8)
    distance = cv2.distanceTransform(inside, cv2.DIST_L2, cv2.DIST_MASK_5)
    share = np.minimum(distance / np.float32(_TAPER * seed.height), np.float32(1.0))
    return np.asarray(share * share * (3.0 - 2.0 * share), dtype=np.float32)


@per_seed
def _unframed(seed: PreparedSeed) -> Image:
    """Return the image with the black frame replaced by the nearest pixels of the field."""
    if not seed.frame.any() or seed.frame.all():
        return seed.image
    _, labels = cv2.distanceTransformWithLabels(
        np.ascontiguousarray(seed.frame).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    nearest = np.zeros((int(labels.max()) + 1, 3), np.uint8)
    nearest[labels[~seed.frame]] = seed.image[~seed.frame]
    return np.asarray(nearest[labels])
