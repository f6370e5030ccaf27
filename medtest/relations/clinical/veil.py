"""Smoke in the lumen and fog on the lens: scattered light over the image.

Both follow the model of haze, I = J·t + L·(1 − t) with t = e^(−βℓ) (S. G. Narasimhan and S. K. Nayar, "Vision and the
atmosphere", International Journal of Computer Vision 48(3), 2002), with an uneven path ℓ, and both lose fine detail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, TypeAlias, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.core.portable import exp
from medtest.core.recent import last_of, per_seed
from medtest.relations.clinical.visible import VisibleRelation, interpolate, level_values
from medtest.relations.levels import Level, LeveledSettings, noise_seed, number

PATH = (0.5, 1.5)
"""Shortest and longest path ℓ; the mean is 1."""
OCTAVES = ((4, 0.65), (9, 0.35))
"""Cells along each side of a random field, and its share of the unevenness."""
COARSE = 4
"""Pixels along a side of a cell in which a random field is computed before it is enlarged."""
WHOLE = 256
"""Weight of 1 in whole numbers."""
GLOW = 0.5
"""Share of the field's own mean colour in the light that a fogged lens scatters."""


class VeilLevel(Level):
    """One severity.

    Attributes:
        thickness: Mean optical thickness β.
        softening: Share of the fine detail that is lost where the path has its mean length, 0 to 1.
    """

    thickness: float = Field(gt=0.0, le=3.0)
    softening: float = Field(ge=0.0, le=1.0)

    @property
    def scale(self) -> float:
        """The optical thickness."""
        return self.thickness


class VeilSettings(LeveledSettings[VeilLevel]):
    """Settings of ``smoke`` and ``lens_fog``.

    Attributes:
        light: Red, green and blue of the scattered light in grey levels.
        detail: Standard deviation of the Gaussian that removes fine detail, as fraction of the image's height.
    """

    light: list[int] = Field(min_length=3, max_length=3)
    detail: float = Field(gt=0.0, le=0.05)


class _Veil(VisibleRelation):
    """Base class of the two relations; a subclass says where the veil is thick."""

    Settings = VeilSettings
    group: ClassVar[str] = "lighting"
    effects: ClassVar[frozenset[str]] = frozenset({"relight", "hide"})
    scale_unit: ClassVar[str] = "optical thickness β"
    nested: ClassVar[bool] = True
    revision: ClassVar[int] = 2

    def between(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> Callable[[float], dict[str, Any]]:
        """Draw the unevenness."""
        low, high = level_values(self.settings.levels, severity, 0.0)
        fixed = {"noise_seed": noise_seed(rng), "light": self._light(seed), "sigma": self.settings.detail * seed.height}

        def parameters(share: float) -> dict[str, Any]:
            values = interpolate(low, high, share)
            return {**values, **fixed, "scale": values["thickness"]}

        return parameters

    def _light(self, seed: PreparedSeed) -> list[int]:
        return list(self.settings.light)

    def _path(self, seed: PreparedSeed, noise_seed: int) -> NDArray[np.uint8]:
        """Return the path from shortest (0) to longest (255), uint8 H×W."""
        return clouds(noise_seed, seed.height, seed.width)

    def render(self, seed: PreparedSeed, params: Params) -> Image:
        """Lay the veil over the field."""
        drawn = int(number(params, "noise_seed"))
        # All severities share the path.
        path = last_of(seed, f"veil.path.{type(self).__name__}", drawn, lambda: self._path(seed, drawn))
        lengths = np.linspace(*PATH, 256)
        through = exp(-number(params, "thickness") * lengths)
        soft = np.minimum(number(params, "softening") * lengths, 1.0)
        kept = np.rint(WHOLE * through * (1.0 - soft)).astype(np.uint16)
        share = np.rint(WHOLE * through).astype(np.uint16) - kept
        sharp_weights, soft_weights = (np.asarray(cv2.LUT(path, table), np.uint16) for table in (kept, share))
        planes = []
        for sharp, blurred, light in zip(
            *_planes(seed, number(params, "sigma")), cast("list[int]", params["light"]), strict=True
        ):
            # The weights add up to 256 at most, so that no sum exceeds 16 bits.
            added = np.rint((1.0 - through) * WHOLE * light + 0.5 * WHOLE - 1.0).astype(np.uint16)
            total: NDArray[np.uint16] = sharp * sharp_weights
            total += blurred * soft_weights
            total += np.asarray(cv2.LUT(path, added), np.uint16)
            planes.append((total >> 8).astype(np.uint8))
        image = np.asarray(cv2.merge(planes), np.uint8)
        cv2.copyTo(seed.image, seed.frame.view(np.uint8), image)
        return image


class Smoke(_Veil):
    """Smoke of electrosurgery in drifting clouds.

    Each severity adds light and takes colour, fine detail first; contrast at large scale is mostly kept, as in
    recordings with and without smoke.
    """


class LensFog(_Veil):
    """Condensation on the lens, thicker towards the rim of the field, glowing in the field's own colour."""

    def _light(self, seed: PreparedSeed) -> list[int]:
        mean = cv2.mean(seed.image, mask=(~seed.frame).view(np.uint8))[:3]
        return [round(GLOW * own + (1.0 - GLOW) * white) for own, white in zip(mean, self.settings.light, strict=True)]

    def _path(self, seed: PreparedSeed, noise_seed: int) -> NDArray[np.uint8]:
        even = clouds(noise_seed, seed.height, seed.width)
        return ((even.astype(np.uint16) + _rim(seed.height, seed.width)) // 2).astype(np.uint8)


def clouds(seed: int, height: int, width: int) -> NDArray[np.uint8]:
    """Return a smooth random field that spans nearly 0 to 255, uint8 height×width."""
    rng = np.random.Generator(np.random.PCG64(seed))
    rows, columns = -(-height // COARSE), -(-width // COARSE)
    total = np.zeros((rows, columns))
    for cells, share in OCTAVES:
        grid = rng.integers(256, size=(cells, cells)).astype(np.float64)
        total += share * _between(_between(grid, rows).T, columns).T
    low, high = float(total.min()), float(total.max())
    small = ((total - low) * (255.0 / max(high - low, 1.0)) + 0.5).astype(np.uint8)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), np.uint8)


def _between(grid: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Return rows between those of a grid, without corners, in arithmetic that every processor rounds alike."""
    places = (np.arange(length) + 0.5) / length * (len(grid) - 1)
    first = np.minimum(places.astype(np.int64), len(grid) - 2)
    share = (places - first)[:, None]
    share = share * share * (3.0 - 2.0 * share)
    rows: NDArray[np.float64] = grid[first] * (1.0 - share) + grid[first + 1] * share
    return rows


@cache
def _rim(height: int, width: int) -> NDArray[np.uint8]:
    """Return the distance from the middle, 255 at the sides and beyond."""
    rows = (np.arange(height) + 0.5) / height * 2.0 - 1.0
    columns = (np.arange(width) + 0.5) / width * 2.0 - 1.0
    return np.minimum(255.0 * (rows[:, None] ** 2 + columns[None, :] ** 2), 255.0).astype(np.uint8)


Planes: TypeAlias = tuple[list[NDArray[np.uint16]], list[NDArray[np.uint16]]]


@per_seed
def _planes(seed: PreparedSeed, sigma: float) -> Planes:
    """Return the channels of the image and of the image without fine detail, uint16 H×W each."""
    pictures = seed.image, _without_detail(seed, sigma)
    sharp, soft = ([plane.astype(np.uint16) for plane in cv2.split(picture)] for picture in pictures)
    return sharp, soft


def _without_detail(seed: PreparedSeed, sigma: float) -> Image:
    """Return the image without fine detail; the frame's edge is not dragged in."""
    field = (~seed.frame).view(np.uint8)
    share = np.maximum(cv2.GaussianBlur(field * np.uint8(255), (0, 0), sigma), 1).astype(np.float32)
    light = cv2.GaussianBlur(cv2.bitwise_and(seed.image, seed.image, mask=field), (0, 0), sigma).astype(np.float32)
    full = light * cv2.merge([np.float32(255) / share] * 3) + np.float32(0.5)
    return np.asarray(np.minimum(full, np.float32(255)), np.uint8)
