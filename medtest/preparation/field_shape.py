"""The shape of an endoscope's field of view, free of resolution, and how it becomes a mask.

A field is a box whose corners may be cut, possibly met by an ellipse, less the rectangles that on-screen displays put
over it. All lengths are fractions of the image's width (x) or height (y).
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
    """A corner that is cut off, in coordinates that run inward from the corner.

    The edge runs from (``across``, 0) to (0, ``down``). With s = x / across and t = y / down it is
    ``s + t = 1 - bulge * (1 - (s - t)**2)``: a straight chamfer for ``bulge`` 0, a parabola that lies within about one
    per cent of a quarter ellipse for 0.414.
    """

    across: float
    down: float
    bulge: float = 0.0

    def reach(self, y: Floats) -> Floats:
        """Return how far the cut reaches inward at each distance ``y`` from the corner (0 beyond its end).

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
"""The corners in the order top left, top right, bottom left, bottom right; None where one is whole."""

NO_CUTS: Cuts = (None, None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ellipse:
    """An ellipse with axes along the image's sides."""

    x: float
    y: float
    across: float
    down: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle, half open."""

    left: float = 0.0
    top: float = 0.0
    right: float = 1.0
    bottom: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShape:
    """The visible field of one image.

    Attributes:
        box: Its bounding box.
        cuts: Its cut corners.
        ellipse: The field lies inside this ellipse, where there is one.
        insets: Rectangles that are not field (displays, pictures in the picture).
        empty: True when nothing is visible at all.
    """

    box: Box = Box()
    cuts: Cuts = NO_CUTS
    ellipse: Ellipse | None = None
    insets: tuple[Box, ...] = ()
    empty: bool = False

    @property
    def kind(self) -> str:
        """One word for people: none, circle, box, cut; with "+inset" when a display covers part of it."""
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
        """Return the field's left and right end at each height; the left end is larger where there is no field.

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
        """Return the frame at a size: bool height×width, True where a pixel's centre is not in the field."""
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
