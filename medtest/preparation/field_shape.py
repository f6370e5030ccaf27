"""Shape of an endoscope's field of view, independent of resolution, and its conversion to a mask.

A field is a box with optional cut corners, optionally intersected with an ellipse, minus the rectangles of on-screen
displays. All lengths are fractions of the image's width (x) or height (y).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask

Floats = NDArray[np.float64]

MAX_BULGE = 0.45
"""Largest bulge of a cut; 0.414 is a quarter of an ellipse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Cut corner, in coordinates that run inward from the corner.

    The edge runs from (``across``, 0) to (0, ``down``). With s = x / across and t = y / down it is
    ``s + t = 1 - bulge * (1 - (s - t)**2)``: a straight chamfer for ``bulge`` 0, a parabola within about one
    per cent of a quarter ellipse for 0.414.
    """

    across: float
    down: float
    bulge: float = 0.0

    def reach(self, y: Floats) -> Floats:
        """Return the inward extent of the cut at each distance ``y`` from the corner (0 beyond its end).

        ``y``, at least 0, and the result are float64 of one shape, in the units of ``down`` and of ``across``.
        """
        t = np.clip(y / self.down, 0.0, 1.0)
        k = self.bulge
        if k < 1e-6:
            difference = 1 - 2 * t
        else:
            difference = (1 - np.sqrt(np.maximum(0.0, 1 - 4 * k * (1 - k - 2 * t)))) / (2 * k)
        return np.where(y >= self.down, 0.0, np.maximum(0.0, self.across * (t + difference)))


Cuts: TypeAlias = tuple[Cut | None, Cut | None, Cut | None, Cut | None]
"""Cuts in the order top left, top right, bottom left, bottom right; None for a whole corner."""

NO_CUTS: Cuts = (None, None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ellipse:
    """Ellipse with axes along the image's sides."""

    x: float
    y: float
    across: float
    down: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Rectangle, half open."""

    left: float = 0.0
    top: float = 0.0
    right: float = 1.0
    bottom: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShape:
    """Visible field of one image.

    Attributes:
        box: Its bounding box.
        cuts: Its cut corners.
        ellipse: Ellipse that bounds the field, or None.
        insets: Rectangles that are not field (displays, pictures in the picture).
        empty: Whether nothing is visible.
    """

    box: Box = Box()
    cuts: Cuts = NO_CUTS
    ellipse: Ellipse | None = None
    insets: tuple[Box, ...] = ()
    empty: bool = False

    @property
    def kind(self) -> str:
        """Name of the shape: none, circle, box, cut; with "+inset" if a display covers part of it."""
        if self.empty:
            return "empty"
        if self.ellipse is not None:
            name = "circle"
        elif any(self.cuts):
            name = "cut"
        else:
            name = "none" if self.box == Box() else "box"
        return f"{name}+inset" if self.insets else name

    def spans(self, y: Floats) -> tuple[Floats, Floats]:
        """Return the field's left and right end at each height; the left end is larger outside the field.

        Heights and ends are float64 of one shape, fractions of the image's height and width, 0 at the top and left.
        """
        box = self.box
        left, right = np.full(y.shape, box.left), np.full(y.shape, box.right)
        for index, cut in enumerate(self.cuts):
            if cut is None:
                continue
            reach = cut.reach(y - box.top if index < 2 else box.bottom - y)
            if index % 2 == 0:
                left = np.maximum(left, box.left + reach)
            else:
                right = np.minimum(right, box.right - reach)
        if self.ellipse is not None:
            inside = 1 - np.square((y - self.ellipse.y) / self.ellipse.down)
            half = np.where(inside >= 0, self.ellipse.across * np.sqrt(np.maximum(inside, 0.0)), -1.0)
            left = np.maximum(left, self.ellipse.x - half)
            right = np.minimum(right, self.ellipse.x + half)
        outside = (y < box.top) | (y >= box.bottom)
        return np.where(outside, 2.0, left), np.where(outside, -1.0, right)

    def frame(self, height: int, width: int) -> Mask:
        """Return the frame at a given size: bool height×width, True where a pixel's centre is outside the field."""
        if self.empty:
            return np.ones((height, width), np.bool_)
        left, right = self.spans((np.arange(height) + 0.5) / height)
        x = np.arange(width)
        first = np.ceil(left * width - 0.5)[:, None]
        last = np.ceil(right * width - 0.5)[:, None]
        frame: Mask = (x < first) | (x >= last)
        for inset in self.insets:
            rows = slice(max(0, round(inset.top * height)), max(0, round(inset.bottom * height)))
            columns = slice(max(0, round(inset.left * width)), max(0, round(inset.right * width)))
            frame[rows, columns] = True
        return frame
