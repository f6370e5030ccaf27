"""Base class of noise relations: units, seeded noise, and handling of values outside the range.

Noise is computed in floating point on images of any dtype and dimension, grey and RGB. ``clip`` decides what follows:

- ``none``: values may leave the range. Floating-point images keep them; integer values are rounded and kept within the
  dtype (which always clips an 8-bit image, a 16-bit one rarely).
- ``range``: values are first clipped to the image's meaningful range, as by a camera or an 8-bit file.

Parameters are in the image's own units (``units: own``: grey levels, Hounsfield units) or in grey levels of an 8-bit
picture over its range (``units: of_255``), so that one suite can hold images of several ranges.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Generic, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import FollowUp, Image, ImageSpec, Params, PreparedSeed
from medtest.relations.base import Relation
from medtest.relations.levels import L, Level, LeveledSettings, noise_seed, number

WHITE = 255.0

Floats: TypeAlias = NDArray[np.floating]


class NoiseSettings(LeveledSettings[L], Generic[L]):
    """Settings shared by all noise relations.

    Attributes:
        clip: ``none`` or ``range``; see the module.
        units: ``own`` or ``of_255``; see the module.
    """

    clip: Literal["none", "range"] = "none"
    units: Literal["own", "of_255"] = "own"


class Noise(Relation):
    """Base class of the noise relations. Subclasses implement :meth:`disturbed`, in floating point and unclipped."""

    group: ClassVar[str] = "noise"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})
    any_image: ClassVar[bool] = True
    touches_frame: ClassVar[bool] = True

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the level's parameters and draw the noise seed."""
        level: Level = self.settings.levels[severity]
        return {**level.model_dump(mode="json"), "scale": level.scale, "noise_seed": noise_seed(rng)}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Disturb the image; the same parameters give the same bytes."""
        rng = np.random.Generator(np.random.PCG64(int(number(params, "noise_seed"))))
        field = self.disturbed(seed.image, seed.spec, params, rng)
        image = finished(field, seed.image.dtype, seed.spec, clip=self.settings.clip)
        return FollowUp(image=image, params=params, scale=number(params, "scale"))

    @abstractmethod
    def disturbed(self, image: Image, spec: ImageSpec, params: Params, rng: np.random.Generator) -> Floats:
        """Return the disturbed image as floats of the same shape, neither clipped nor rounded.

        Args:
            image: Read-only.
            spec: Range and axes of the image.
            params: Parameters from :meth:`sample`.
            rng: Seeded by ``noise_seed``.
        """

    def unit(self, spec: ImageSpec) -> float:
        """Return one unit of the parameters in the image's own units."""
        return spec.span / WHITE if self.settings.units == "of_255" else 1.0


def finished(field: Floats, dtype: np.dtype[Any], spec: ImageSpec, *, clip: str) -> Image:
    """Return a disturbed image in its source's dtype: clipped if requested, integers rounded and limited to the dtype.

    Args:
        field: Floats of any shape, in the image's own units.
        dtype: The source's dtype.
        spec: Meaningful range of the image.
        clip: ``range`` clips to ``spec.low`` and ``spec.high``; ``none`` keeps everything that the dtype can hold.

    Returns:
        Array of the field's shape, contiguous.
    """
    if clip == "range":
        field = np.clip(field, spec.low, spec.high)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return np.asarray(np.clip(np.rint(field), limits.min, limits.max).astype(dtype))
    return np.ascontiguousarray(field, dtype=dtype)


def as_float(image: Image) -> Floats:
    """Return an image of any shape and dtype as float32, or as float64 if float32 would round it (int32, doubles)."""
    small = image.dtype.itemsize <= 2 or image.dtype == np.float32
    return image.astype(np.float32 if small else np.float64)


def normal(rng: np.random.Generator, like: Floats) -> Floats:
    """Return standard normal numbers of an array's shape and dtype."""
    single = like.dtype == np.float32
    return rng.standard_normal(like.shape, dtype=np.float32 if single else np.float64)
