"""Picture draft: reflectance, light and positions of things, at one working size."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.drawing import Plane, plane
from medtest.phantoms.fields import Field, as_field
from medtest.phantoms.questions.plan import CELLS

WORK = 320
"""Pixels a side for drawing walls, findings and landmarks, independent of the requested size."""

SRGB: dict[str, tuple[int, int, int]] = {
    "red": (188, 38, 40),
    "pink": (240, 152, 168),
    "white": (240, 232, 222),
    "yellow": (232, 200, 84),
    "orange": (240, 132, 36),
    "brown": (118, 68, 38),
    "purple": (128, 58, 126),
    "blue": (58, 92, 184),
}
"""Appearance of each colour under full light, 8-bit sRGB."""


def linear(colour: tuple[float, float, float]) -> NDArray[np.float32]:
    """Return the linear reflectance of an 8-bit colour; the camera's gamma is 2."""
    return np.asarray([(value / 255.0) ** 2 for value in colour], np.float32)


@dataclass(kw_only=True, eq=False)
class PictureDraft:
    """Picture being drawn.

    Attributes:
        where: Coordinates in half sides of the picture.
        albedo: float32 h×w×3, linear reflectance.
        light: float32 h×w, 1 in full light.
        wet: float32 h×w in [0, 1], 0 without vessels of the wall.
        things: Mask of each thing, bool h×w, by its name.
        polar: For the oesophagus: distance from the lumen's centre, its unit direction (x, y), and the distance of the
            z-line in that direction; empty otherwise.
    """

    albedo: Field
    light: Field
    where: Plane = field(default_factory=lambda: plane(WORK))
    wet: Field = field(default_factory=lambda: np.ones((WORK, WORK), np.float32))
    things: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    polar: tuple[Field, ...] = ()

    def paint(self, alpha: Field, colour: tuple[float, float, float] | NDArray[np.float32]) -> None:
        """Blend a reflectance over the wall with the opacity ``alpha``, in place."""
        target = linear(colour) if isinstance(colour, tuple) else colour
        self.albedo += alpha[..., None] * (target - self.albedo)
        self.wet *= np.float32(1.0) - alpha

    def lift(self, alpha: Field, light: Field | float) -> None:
        """Give a part its own light, in place."""
        self.light += alpha * (as_field(light) - self.light)


def cells_of(area: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the cells of a thing: those with an eighth of it, or covered to a quarter, and the one with most."""
    height, width = area.shape
    rows, columns = ([round(side * k / 3) for k in range(4)] for side in (height, width))
    total = int(area.sum())
    if not total:
        return ()
    shares, covered = [], []
    for k in range(len(CELLS)):
        part = area[rows[k // 3] : rows[k // 3 + 1], columns[k % 3] : columns[k % 3 + 1]]
        shares.append(float(part.sum()) / total)
        covered.append(float(part.mean()))
    most = max(shares)
    return tuple(
        cell
        for cell, share, cover in zip(CELLS, shares, covered, strict=True)
        if share >= 0.125 or cover >= 0.25 or share == most
    )
