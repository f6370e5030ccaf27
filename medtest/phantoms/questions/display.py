"""Overlays of the endoscope's processor: the black frame, text, and the box of the endoscope's position."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.drawing import Canvas, curve, octagon, unit

CORNERS = ("upper-left", "upper-right", "lower-right")
"""Corners available for text; the box uses the fourth."""

BOX_SHARE = 0.27
"""Side of the box as a share of the picture's side."""


def field_of_view(rng: np.random.Generator, size: int) -> NDArray[np.float32]:
    """Return the field of view, float32 size×size, 1 inside and 0 on the black frame: a square without its corners."""
    canvas = Canvas(size)
    cut = float(rng.uniform(0.20, 0.34))
    rim = float(rng.uniform(0.985, 1.02))
    canvas.polygon(octagon(rim, rim - cut))
    return canvas.field()


def text_lines(rng: np.random.Generator) -> list[str]:
    """Return the lines of a display: a date, a time, a fictitious name, settings. All values are invented."""
    n = [int(v) for v in rng.integers(0, 60, 8)]
    lines = [
        f"{1 + n[0] % 28:02d}/{1 + n[1] % 12:02d}/{2010 + n[2] % 14}",
        f"{n[3] % 24:02d}:{n[4]:02d}:{n[5]:02d}",
    ]
    more = [f"Case {100 + 13 * n[6]}", f"SCV:{n[7] % 30}", f"CVP:A{n[1] % 9}", "Dr. Demo", "D.F:TEST"]
    first = int(rng.integers(len(more) - 2))
    return lines + more[first : first + int(rng.integers(1, 3))]


def draw_text(picture: NDArray[np.uint8], lines: list[str], corner: str) -> NDArray[np.bool_]:
    """Print lines in a corner, white with a dark outline, in place; return their bounding box as a mask."""
    size = picture.shape[0]
    scale = size / 512.0 * 0.5
    step = round(21 * size / 512.0)
    widths = [cv2.getTextSize(line, cv2.FONT_HERSHEY_SIMPLEX, scale, 1)[0][0] for line in lines]
    gap = round(0.022 * size)
    top = gap + step if corner.startswith("upper") else size - gap - step * (len(lines) - 1)
    left = gap if corner.endswith("left") else size - gap - max(widths)
    thick = max(1, round(size / 512.0))
    for number, line in enumerate(lines):
        at = (left, top + number * step)
        cv2.putText(picture, line, at, cv2.FONT_HERSHEY_SIMPLEX, scale, (8, 8, 8), 2 + thick, cv2.LINE_AA)
        cv2.putText(picture, line, at, cv2.FONT_HERSHEY_SIMPLEX, scale, (238, 238, 238), thick, cv2.LINE_AA)
    mask = np.zeros((size, size), np.bool_)
    mask[max(0, top - step) : top + step * (len(lines) - 1) + 6, max(0, left - 4) : left + max(widths) + 4] = True
    return mask


def text_box(corner: str, lines: list[str], size: int) -> NDArray[np.bool_]:
    """Return the area that :func:`draw_text` would print on."""
    return draw_text(np.zeros((size, size, 3), np.uint8), lines, corner)


def box_place(size: int) -> NDArray[np.bool_]:
    """Return the area of the box: the lower left corner."""
    mask = np.zeros((size, size), np.bool_)
    side = round(BOX_SHARE * size)
    mask[size - side :, :side] = True
    return mask


def draw_box(rng: np.random.Generator, picture: NDArray[np.uint8]) -> None:
    """Draw the box with the endoscope's position, in place: black, framed in green, the scope a pale green curve."""
    size = picture.shape[0]
    side = round(BOX_SHARE * size)
    top, gap = size - side, max(2, round(0.012 * size))
    picture[top:, :side] = 4
    cv2.rectangle(picture, (gap, top + gap), (side - gap, size - gap), (6, 74, 34), -1)
    cv2.rectangle(picture, (gap, top + gap), (side - gap, size - gap), (40, 190, 90), max(1, round(size / 256)))
    middle = (-1.0 + BOX_SHARE, 1.0 - BOX_SHARE)
    turn = float(rng.random())
    points = []
    for k in range(6):
        dx, dy = unit(turn + 0.13 * k)
        reach = BOX_SHARE * (0.25 + 0.08 * k) * float(rng.uniform(0.85, 1.1))
        points.append((middle[0] + reach * dx, middle[1] + reach * dy))
    scope = Canvas(size)
    scope.line(curve(points), 0.035)
    alpha = scope.field()[..., None]
    picture[...] = np.rint(picture + alpha * (np.asarray((176, 236, 190), np.float32) - picture)).astype(np.uint8)
