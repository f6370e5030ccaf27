"""Black frames like those that real endoscopes draw around the field of view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

FRAME_KINDS: tuple[str, ...] = ("none", "round", "octagonal", "rectangular", "cut_corners", "inset", "stepped")
"""Kinds of frames; ``inset`` and ``stepped`` are octagons with a display box or an L cut out at a lower corner."""

Box: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnFrame:
    """A frame drawn at full size.

    Attributes:
        kind: One of :data:`FRAME_KINDS`.
        field: uint8 H×W, 255 in the field of view, 0 on the frame, smooth over one pixel between.
        boxes: Display boxes on the frame as (left, top, right, bottom), to be painted.
    """

    kind: str
    field: NDArray[np.uint8]
    boxes: tuple[Box, ...] = ()

    @property
    def black(self) -> NDArray[np.bool_]:
        """Mask of the frame, bool H×W."""
        return self.field < 128


def _polygon(shape: tuple[int, int], points: list[tuple[float, float]]) -> NDArray[np.uint8]:
    canvas = np.zeros(shape, np.uint8)
    fixed = np.round(np.array(points, np.float64) * 16.0).astype(np.int32).reshape(-1, 1, 2)
    cv2.fillPoly(canvas, [fixed], 255, lineType=cv2.LINE_AA, shift=4)
    return canvas


def _corners(left: float, top: float, right: float, bottom: float, cuts: list[float]) -> list[tuple[float, float]]:
    tl, tr, br, bl = cuts
    return [
        (left + tl, top), (right - tr, top), (right, top + tr), (right, bottom - br),
        (right - br, bottom), (left + bl, bottom), (left, bottom - bl), (left, top + tl),
    ]  # fmt: skip


def _round(rng: np.random.Generator, height: int, width: int) -> NDArray[np.uint8]:
    radius = float(rng.uniform(0.49, 0.60)) * min(height * 1.12, width)
    radius = max(radius, 0.45 * min(height, width))
    slack = max(0.0, width / 2 - radius)
    x = width / 2 + float(rng.uniform(-0.6, 0.6)) * slack
    y = height / 2 + float(rng.uniform(-0.02, 0.02)) * height
    canvas = np.zeros((height, width), np.uint8)
    cv2.circle(canvas, (round(x * 16), round(y * 16)), round(radius * 16), 255, -1, cv2.LINE_AA, 4)
    return canvas


def _octagon(rng: np.random.Generator, height: int, width: int) -> NDArray[np.uint8]:
    side = min(height * float(rng.uniform(1.05, 1.3)), width)
    spare = width - side
    left = spare * float(rng.choice([0.0, 0.0, 0.5, 1.0])) if spare > 0 else 0.0
    margin = height * float(rng.choice([0.0, 0.0, 0.01, 0.03]))
    cut = height * float(rng.uniform(0.2, 0.34))
    cuts = [cut * float(rng.choice([1.0, 1.0, 1.0, 0.6])) for _ in range(4)]
    left = left - float(rng.choice([0.0, 0.0, 0.04, 0.1])) * width
    return _polygon((height, width), _corners(left, margin - 1, left + side + 1, height - margin, cuts))


def _rectangle(rng: np.random.Generator, height: int, width: int, cut: float) -> NDArray[np.uint8]:
    margins = [float(v) for v in rng.uniform(0.01, 0.09, 4)]
    flush = rng.random(4) < 0.35
    flush[int(rng.integers(4))] = False
    left, top, right, bottom = (0.0 if flush[i] else margins[i] for i in range(4))
    cuts = [height * cut * float(v) for v in rng.choice([0.6, 1.0, 1.0], 4)]
    corners = _corners(left * width - 1, top * height - 1, (1 - right) * width, (1 - bottom) * height, cuts)
    return _polygon((height, width), corners)


def _display(rng: np.random.Generator, canvas: NDArray[np.uint8], *, stepped: bool) -> list[Box]:
    """Cut a display box (an L if ``stepped``) out of a lower corner, and return the boxes to paint."""
    height, width = canvas.shape
    w = round(width * float(rng.uniform(0.2, 0.34)))
    h = round(height * float(rng.uniform(0.22, 0.36)))
    flip = bool(rng.random() < 0.15)
    parts = [(w, h)]
    if stepped:
        parts.append((round(w * float(rng.uniform(1.15, 1.5))), round(h * float(rng.uniform(0.3, 0.7)))))
    for part_w, part_h in parts:
        columns = slice(width - part_w, width) if flip else slice(0, part_w)
        canvas[height - part_h :, columns] = 0
    inner = round(0.06 * w)
    left = width - w + inner if flip else inner
    return [(left, height - h + inner, left + w - 2 * inner, height - inner)]


def make_frame(rng: np.random.Generator, kind: str, height: int, width: int) -> DrawnFrame:
    """Draw a frame of the given kind."""
    boxes: list[Box] = []
    if kind == "none":
        canvas = np.full((height, width), 255, np.uint8)
    elif kind == "round":
        canvas = _round(rng, height, width)
    elif kind in ("rectangular", "cut_corners"):
        canvas = _rectangle(rng, height, width, 0.0 if kind == "rectangular" else float(rng.uniform(0.05, 0.16)))
    else:
        canvas = _octagon(rng, height, width)
        if kind != "octagonal":
            display_boxes = _display(rng, canvas, stepped=kind == "stepped")
            boxes = display_boxes if rng.random() < 0.4 else []
    return DrawnFrame(kind=kind, field=canvas, boxes=tuple(boxes))
