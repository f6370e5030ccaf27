"""Pictures prepared for analysis: fixed size, field of view, colours separated from light."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]

SIDE = 256
"""Pixels of the shorter side for the analysis of colours."""
FINE = 512
"""Pixels of the shorter side for letters and shading."""
_CAST, _DULL = 0.27, 185.0
"""Bounds of casts and exposures that highlights reach by chance."""
_GLINT = 1.3
"""Least ratio of brightness in the darkest channel between highlights and the field."""
_LONGEST = 3
_MOST_REGIONS = 64
DARK = 48.0
"""Brightness (largest channel) below which colours are unreliable."""


@dataclass(frozen=True, eq=False)
class PictureView:
    """A picture at one size.

    Attributes:
        rgb: uint8 h×w×3.
        light: float32 h×w, the largest channel, lightly smoothed, 0 to 255.
        warm: float32 h×w, ln(R / G) of the smoothed picture.
        blue: float32 h×w, ln(G / B): low where it is blue, high where it is yellow.
        field: bool h×w, the area seen by the scope, without black frame and display boxes.
        box: Whether a green or black box covers part of the picture.
    """

    rgb: Bytes
    light: Floats
    warm: Floats
    blue: Floats
    field: Bools
    box: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.rgb.shape[0]), int(self.rgb.shape[1])

    @property
    def lit(self) -> Bools:
        """Area in which colours are reliable."""
        return self.field & (self.light > DARK)


def resized(picture: NDArray[np.uint8], side: int) -> Bytes:
    """Return a picture resized to the given shorter side, or its longer side to at most three times that."""
    height, width = picture.shape[:2]
    scale = min(side / min(height, width), _LONGEST * side / max(height, width))
    if scale == 1.0:
        return picture
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR))


def brightest(picture: NDArray[Any]) -> NDArray[Any]:
    """Return each pixel's largest channel, h×w; several times faster than ``max(axis=2)``."""
    largest: NDArray[Any] = np.maximum(np.maximum(picture[..., 0], picture[..., 1]), picture[..., 2])
    return largest


def view_of(picture: NDArray[np.uint8], side: int = SIDE) -> PictureView:
    """Return a picture prepared for analysis.

    Args:
        picture: uint8 RGB H×W×3.
        side: Pixels of its shorter side.
    """
    rgb = resized(picture, side)
    soft = cv2.GaussianBlur(rgb, (0, 0), 1.2 * side / SIDE).astype(np.float32) + np.float32(3.0)
    logs = np.log(soft)
    light = np.asarray(brightest(soft) - np.float32(3.0), np.float32)
    boxes = _boxes(rgb)
    frame = _frame(light)
    field = ~(frame | boxes)
    warm, blue = logs[..., 0] - logs[..., 1], logs[..., 1] - logs[..., 2]
    cast, level = _glints(rgb, field)
    if abs(cast) > _CAST:
        warm, blue = warm - np.float32(cast), blue + np.float32(cast)
    if level < _DULL:
        deeper = np.float32(1.0 + 0.33 * min(1.0, (235.0 - level) / 85.0))
        warm, blue, light = warm * deeper, blue * deeper, light * np.float32(235.0 / level)
    return PictureView(rgb, light, warm, blue, field, _has_box(boxes, frame))


def _glints(rgb: Bytes, field: Bools) -> tuple[float, float]:
    """Return colour cast (green below 0, purple above) and exposure, from wet highlights, which are white.

    Returns:
        The cast in the units of hues, and the brightness of highlights, 1 to 255.
    """
    inner = field & np.asarray(cv2.erode(field.astype(np.uint8), np.ones((5, 5), np.uint8)), np.bool_)
    if not inner.any():
        return 0.0, 255.0
    pixels = rgb[inner]
    darkest = np.minimum(np.minimum(pixels[:, 0], pixels[:, 1]), pixels[:, 2])
    # An order statistic instead of a percentile gives the same result with every library.
    most = max(1, pixels.shape[0] // 1000)
    least = float(np.partition(darkest, -most)[-most])
    if least < _GLINT * float(np.median(darkest)):  # no highlights
        return 0.0, 255.0
    chosen = pixels[darkest >= least].astype(np.float32) + np.float32(3.0)
    logs = np.median(np.log(chosen), axis=0)
    return float((2 * logs[0] - 4 * logs[1] + 2 * logs[2]) / 4), float(np.median(brightest(chosen[:, None])))


def _frame(light: Floats) -> Bools:
    """Return the black frame: black areas connected to the border, if large."""
    dark = np.pad((light < 24).astype(np.uint8), 1, constant_values=1)
    _, labels = cv2.connectedComponents(dark, connectivity=4)
    frame: Bools = (labels == labels[0, 0])[1:-1, 1:-1]
    return frame


def _boxes(rgb: Bytes) -> Bools:
    """Return rectangles of the display's green."""
    red, green, blue = (rgb[..., channel].astype(np.int16) for channel in range(3))
    green_area = ((green > red + 22) & (green > blue + 12)).astype(np.uint8)
    green_area = cv2.morphologyEx(green_area, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8)).astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(green_area, connectivity=8)
    boxes = np.zeros(green_area.shape, np.bool_)
    for number in range(1, count):
        left, top, width, height, area = (int(value) for value in stats[number])
        if area >= 0.008 * green_area.size and area >= 0.8 * width * height and 0.4 < width / height < 2.5:
            grown = max(2, round(0.016 * min(green_area.shape)))
            boxes[max(0, top - grown) : top + height + grown, max(0, left - grown) : left + width + grown] = True
    return boxes


def _has_box(boxes: Bools, frame: Bools) -> bool:
    """Return True if there is a green box, or a black square in one corner of the field."""
    if boxes.any():
        return True
    height, width = frame.shape
    side = round(0.2 * min(height, width))
    ends = (slice(0, side), slice(height - side, height)), (slice(0, side), slice(width - side, width))
    black = [float(frame[rows, columns].mean()) > 0.97 for rows in ends[0] for columns in ends[1]]
    # Two black corners are a bar beside a round field, or a cropped strip.
    return sum(black) == 1 and float(frame.mean()) < 0.6


def regions(mask: Bools, least: int) -> list[Region]:
    """Return the connected parts of a mask, the largest first.

    Args:
        mask: bool h×w.
        least: Minimum number of pixels of a part.
    """
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    order = sorted(range(1, count), key=lambda k: -int(stats[k, cv2.CC_STAT_AREA]))
    large = [k for k in order[:_MOST_REGIONS] if int(stats[k, cv2.CC_STAT_AREA]) >= least]
    return [_region(labels == k) for k in large]


@dataclass(frozen=True, eq=False)
class Region:
    """A connected part of a picture.

    Attributes:
        mask: bool h×w.
        area: Number of pixels.
        filled: Number of pixels with holes filled.
        hull: Number of pixels of its convex hull.
        long: Longer side of its smallest enclosing rectangle.
        short: Shorter side.
        centre: Column and row of its centroid.
    """

    mask: Bools
    area: int
    filled: int
    hull: float
    long: float
    short: float
    centre: tuple[float, float]

    @property
    def solidity(self) -> float:
        """Share of the hull that it fills, holes included."""
        return self.filled / max(self.hull, 1.0)

    @property
    def elongation(self) -> float:
        """Ratio of longer to shorter side."""
        return self.long / max(self.short, 1.0)


def _region(mask: Bools) -> Region:
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outline = max(contours, key=len)
    filled = np.zeros(mask.shape, np.uint8)
    cv2.drawContours(filled, [outline], -1, 1, cv2.FILLED)
    sides: Any = cv2.minAreaRect(outline)[1]
    long, short = max(sides) + 1.0, min(sides) + 1.0
    hull = np.zeros(mask.shape, np.uint8)
    cv2.fillPoly(hull, [cv2.convexHull(outline)], 1)
    rows, columns = np.nonzero(mask)
    return Region(
        mask, int(mask.sum()), int(filled.sum()), float(hull.sum()), float(long), float(short),
        (float(columns.mean()), float(rows.mean())),
    )  # fmt: skip


def hull_of(mask: Bools) -> Bools:
    """Return the convex hull of a mask."""
    rows, columns = np.nonzero(mask)
    canvas = np.zeros(mask.shape, np.uint8)
    if rows.size:
        cv2.fillPoly(canvas, [cv2.convexHull(np.stack([columns, rows], axis=1).astype(np.int32))], 1)
    return canvas.astype(np.bool_)


def filled(mask: Bools) -> Bools:
    """Return a mask without holes."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    canvas = np.zeros(mask.shape, np.uint8)
    cv2.drawContours(canvas, contours, -1, 1, cv2.FILLED)
    return canvas.astype(np.bool_)


def closed(mask: Bools, side: int) -> Bools:
    """Return a mask with gaps narrower than a disc of ``side`` pixels filled."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
    return np.asarray(cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, kernel), np.bool_)


def grown(mask: Bools, side: int) -> Bools:
    """Return a mask dilated by a square of ``side`` pixels."""
    return np.asarray(cv2.dilate(mask.astype(np.uint8), np.ones((side, side), np.uint8)), np.bool_)


def cells_of(mask: Bools) -> tuple[int, ...]:
    """Return the cells of the 3 × 3 grid with a fifth of the mask or half covered by it, the fullest first."""
    height, width = mask.shape
    total = max(1, int(mask.sum()))
    chosen: list[tuple[float, int]] = []
    counted: list[tuple[float, int]] = []
    for cell in range(9):
        row, column = divmod(cell, 3)
        part = mask[row * height // 3 : (row + 1) * height // 3, column * width // 3 : (column + 1) * width // 3]
        inside = float(part.sum())
        counted.append((-inside, cell))
        if inside >= 0.2 * total or inside >= 0.5 * part.size:
            chosen.append((-inside, cell))
    if not chosen:  # spread thinly over many cells
        most = min(count for count, _ in counted)
        chosen = [entry for entry in counted if entry[0] <= 0.6 * most and entry[0] < 0]
    return tuple(cell for _, cell in sorted(chosen))
