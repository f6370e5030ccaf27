"""Instruments that enter from the rim, of five kinds with different shafts, and clips on the wall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.drawing import Canvas, Points, curve, unit
from medtest.phantoms.fields import Field, Point, as_field
from medtest.phantoms.questions.plan import InstrumentPlan, middle

TRIES = 60
"""Number of positions tried; the one that covers least of the areas to keep visible is taken."""


Colour: TypeAlias = "tuple[float, float, float]"
"""8-bit sRGB."""


@dataclass(frozen=True, slots=True)
class InstrumentAxis:
    """Axis of an instrument: its tip, the unit vector from the tip to its origin, and its length."""

    x: float
    y: float
    dx: float
    dy: float
    length: float

    def at(self, along: float, across: float = 0.0) -> tuple[float, float]:
        """Return a point in half sides of the picture."""
        return self.x + along * self.dx - across * self.dy, self.y + along * self.dy + across * self.dx


_HALF = {"biopsy forceps": 0.05, "polyp snare": 0.045, "injection needle": 0.045, "metal clip": 0.03, "tube": 0.085}
"""Half width of each kind of shaft."""

_BLOCKED = 0.02
"""Share of an instrument that may cover areas to keep visible."""


def draw_instrument(
    rng: np.random.Generator, picture: Field, plan: InstrumentPlan, blocked: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Draw one instrument over linear RGB, in place.

    Args:
        rng: Its random stream.
        picture: float32 H×W×3, linear.
        plan: Its kind and the cell of its tip.
        blocked: bool h×w at any size, areas to keep visible.

    Returns:
        Its mask, bool H×W.
    """
    size = picture.shape[0]
    laid = _best_axis(rng, plan, blocked)
    {
        "biopsy forceps": _forceps,
        "polyp snare": _snare,
        "injection needle": _needle,
        "metal clip": _clip,
        "tube": _tube,
    }[plan.kind](layers := _Layers(size), laid)
    layers.over(picture)
    return np.asarray(layers.solid > 0.3)


def _best_axis(rng: np.random.Generator, plan: InstrumentPlan, blocked: NDArray[np.bool_]) -> InstrumentAxis:
    """Return the axis that covers least of the blocked areas; the first that covers almost nothing."""
    tried: list[tuple[float, InstrumentAxis]] = []
    while len(tried) < TRIES and not any(share <= _BLOCKED for share, _ in tried):
        x, y = (value + float(rng.uniform(-0.12, 0.12)) for value in middle(plan.cell, 0.12))
        turn = unit(float(rng.random()))
        if plan.kind == "metal clip":
            laid = InstrumentAxis(x, y, turn[0], turn[1], 0.3)
        else:
            # It enters roughly from the rim on its side of the picture.
            ox, oy = x + 0.55 * turn[0], y + 0.55 * turn[1]
            far = (ox * ox + oy * oy) ** 0.5 + 1e-6
            tx, ty = 1.5 * ox / far - x, 1.5 * oy / far - y
            length = (tx * tx + ty * ty) ** 0.5
            laid = InstrumentAxis(x, y, tx / length, ty / length, length)
        share = _covered(laid, _HALF[plan.kind] + (0.08 if plan.kind == "polyp snare" else 0.0), blocked)
        tried.append((share, laid))
    return min(tried, key=lambda pair: pair[0])[1]


def _covered(laid: InstrumentAxis, half: float, blocked: NDArray[np.bool_]) -> float:
    """Return the share of points along an axis in blocked areas."""
    height, width = blocked.shape
    hits = inside = 0
    for along in np.linspace(-0.02, laid.length, 40):
        for across in (-half - 0.02, 0.0, half + 0.02):
            x, y = laid.at(float(along), across)
            column, row = int((x + 1.0) * 0.5 * width), int((y + 1.0) * 0.5 * height)
            if 0 <= column < width and 0 <= row < height:
                inside += 1
                hits += bool(blocked[row, column])
    return hits / max(1, inside)


class _Layers:
    """Layers over a picture: shapes of one colour each, in order."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._parts: list[tuple[tuple[slice, slice], Field, Colour]] = []
        self.solid: Field = np.zeros((size, size), np.float32)

    def add(self, canvas: Canvas, colour: Colour, alpha: float = 1.0) -> None:
        """Add the content of a canvas in an 8-bit colour."""
        drawn = canvas.field()
        left, top, width, height = cv2.boundingRect((drawn > 0).astype(np.uint8))
        window = (slice(top, top + height), slice(left, left + width))
        shape = as_field(drawn[window] * np.float32(alpha))
        self._parts.append((window, shape, colour))
        np.maximum(self.solid[window], shape, out=self.solid[window])

    def line(self, points: Points, width: float, colour: Colour) -> None:
        """Add a line in an 8-bit colour."""
        canvas = Canvas(self.size)
        canvas.line(points, width)
        self.add(canvas, colour)

    def disc(self, at: Point, radius: float, colour: Colour) -> None:
        """Add a disc in an 8-bit colour."""
        canvas = Canvas(self.size)
        canvas.disc(*at, radius)
        self.add(canvas, colour)

    def over(self, picture: Field) -> None:
        """Blend every layer over linear RGB, with a soft shadow under all of them, in place."""
        shift = max(1, round(0.018 * self.size))
        shadow = np.roll(self.solid, (shift, shift), (0, 1))
        shadow[:shift] = shadow[:, :shift] = 0.0
        picture *= as_field(1.0 - 0.35 * shadow * (1.0 - self.solid))[..., None]
        for window, shape, colour in self._parts:
            target = np.asarray([(value / 255.0) ** 2 for value in colour], np.float32)
            near = picture[window]
            near += shape[..., None] * (target - near)


def _shaft(
    layers: _Layers, laid: InstrumentAxis, start: float, half: float, dark: Colour, mean: Colour, shine: Colour
) -> None:
    """Add a round shaft: dark at its sides, with a bright line beside its centre."""
    for share, offset, colour in ((1.0, 0.0, dark), (0.74, 0.05, mean), (0.2, 0.3, shine)):
        ends = [laid.at(start, -offset * half), laid.at(laid.length + 0.6, -offset * half)]
        layers.line(ends, 2.0 * half * share, colour)


def _bands(
    layers: _Layers, laid: InstrumentAxis, first: float, step: float, half: float, colour: Colour, width: float
) -> None:
    canvas = Canvas(layers.size)
    along = first
    while along < laid.length + 0.2:
        canvas.line([laid.at(along, -half), laid.at(along, half)], width)
        along += step
    layers.add(canvas, colour, 0.85)


def _forceps(layers: _Layers, laid: InstrumentAxis) -> None:
    half = _HALF["biopsy forceps"]
    _shaft(layers, laid, 0.17, half, (62, 62, 66), (128, 128, 132), (206, 206, 210))
    _bands(layers, laid, 0.2, 0.045, half * 0.95, (52, 52, 56), 0.016)
    for side in (-1.0, 1.0):
        for width, colour in ((0.05, (96, 98, 104)), (0.026, (214, 216, 222))):
            jaw = curve([laid.at(0.17), laid.at(0.09, side * 0.075), laid.at(0.0, side * 0.06)])
            layers.line(jaw, width, colour)


def _snare(layers: _Layers, laid: InstrumentAxis) -> None:
    half = _HALF["polyp snare"]
    _shaft(layers, laid, 0.4, half, (178, 184, 196), (232, 236, 244), (252, 252, 252))
    loop = [laid.at(0.4), laid.at(0.3, 0.10), laid.at(0.14, 0.14), laid.at(0.01, 0.07)]
    loop += [laid.at(0.0, -0.02), laid.at(0.08, -0.12), laid.at(0.26, -0.12), laid.at(0.4)]
    for width, colour in ((0.03, (84, 86, 90)), (0.014, (204, 206, 210))):
        layers.line(curve(loop), width, colour)


def _needle(layers: _Layers, laid: InstrumentAxis) -> None:
    half = _HALF["injection needle"]
    _shaft(layers, laid, 0.2, half, (72, 124, 170), (120, 178, 222), (224, 242, 252))
    hub, steel = [laid.at(0.17), laid.at(0.26)], [laid.at(0.0), laid.at(0.19)]
    layers.line(hub, 2.0 * half, (30, 74, 150))
    layers.line(steel, 0.026, (214, 218, 224))


def _clip(layers: _Layers, laid: InstrumentAxis) -> None:
    for side in (-1.0, 1.0):
        for width, colour in ((0.042, (92, 94, 100)), (0.022, (222, 224, 230))):
            prong = [laid.at(0.16, side * 0.012), laid.at(0.08, side * 0.05), laid.at(0.0, side * 0.012)]
            layers.line(prong, width, colour)
    for share, colour in ((1.0, (92, 94, 100)), (0.6, (168, 170, 176)), (0.2, (234, 236, 240))):
        layers.line([laid.at(0.16), laid.at(0.3)], 2.0 * 0.03 * share, colour)


def _tube(layers: _Layers, laid: InstrumentAxis) -> None:
    half = _HALF["tube"]
    _shaft(layers, laid, 0.06, half, (150, 122, 40), (232, 204, 96), (252, 244, 196))
    _bands(layers, laid, 0.34, 0.3, half, (58, 54, 44), 0.045)
    layers.disc(laid.at(0.06), half, (206, 178, 84))
    layers.disc(laid.at(0.06), half * 0.55, (34, 28, 24))
