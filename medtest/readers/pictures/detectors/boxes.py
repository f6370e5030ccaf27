"""Boxes of detectors: resizes pictures for a network, and converts its boxes back to the pictures.

Pure functions on arrays; boxes are float64 K×4: left, top, right, bottom, in pixels unless stated as fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.core.errors import BadOutput

Floats = NDArray[np.float64]
STRIDES: Final = (8, 16, 32)
PAD: Final = 114
"""Grey level of the padding around a picture, as in the training of YOLO networks."""


@dataclass(frozen=True, kw_only=True)
class Detections:
    """Detections of a network in a picture.

    Attributes:
        boxes: float64 K×4, fractions of the picture.
        scores: float64 K, 0 to 1.
        labels: int64 K, indices of classes.
    """

    boxes: Floats
    scores: Floats
    labels: NDArray[np.int64]

    def kept(self, order: NDArray[np.intp]) -> Detections:
        """Return the detections with the given indices, in that order."""
        return Detections(boxes=self.boxes[order], scores=self.scores[order], labels=self.labels[order])


@dataclass(frozen=True, slots=True)
class BoxFit:
    """Scale factors of a picture that was resized for a network.

    Attributes:
        height: Height of the picture in pixels.
        width: Width of the picture in pixels.
        down: Vertical scale factor.
        across: Horizontal scale factor.
    """

    height: int
    width: int
    down: float
    across: float


def letterboxed(image: Image, size: tuple[int, int]) -> tuple[Image, BoxFit]:
    """Return a picture scaled into the upper left corner of the network's input; the rest is grey.

    As in YOLOX (Z. Ge et al., 2021, ``preproc``): proportions are kept, sides are rounded down to whole pixels, and
    interpolation is linear.

    Args:
        image: uint8 H×W×3.
        size: Height and width.
    """
    height, width = image.shape[:2]
    ratio = min(size[0] / height, size[1] / width)
    rows, columns = max(int(height * ratio), 1), max(int(width * ratio), 1)
    canvas = np.full((*size, 3), PAD, np.uint8)
    canvas[:rows, :columns] = cv2.resize(image, (columns, rows), interpolation=cv2.INTER_LINEAR)
    return canvas, BoxFit(height, width, ratio, ratio)


def stretched(image: Image, size: tuple[int, int]) -> tuple[Image, BoxFit]:
    """Return a picture stretched to the network's size without keeping proportions, and the scale factors."""
    height, width = image.shape[:2]
    shown = cv2.resize(image, (size[1], size[0]), interpolation=cv2.INTER_LINEAR)
    return shown, BoxFit(height, width, size[0] / height, size[1] / width)


def yolox_boxes(output: NDArray[np.floating], size: tuple[int, int], *, decoded: bool) -> tuple[Floats, Floats]:
    """Return boxes and class scores from the output of a YOLOX network for one picture.

    A cell at column x and row y of a grid of stride s gives dx, dy, dw, dh: the box is centred at (x + dx) s, (y + dy)
    s and is e^dw s wide and e^dh s high; a class's score is the cell's objectness times the score of the class.

    Args:
        output: A×(5+C), cells of the strides 8, 16 and 32 one after the other, row by row.
        size: Height and width of the network's input.
        decoded: Whether the graph has already decoded the boxes: centres, widths and heights are in pixels.

    Returns:
        Boxes A×4 in the network's pixels, scores A×C.

    Raises:
        BadOutput: The number of cells does not match the strides, or values are not finite.
    """
    raw_out = np.asarray(output, np.float64)
    if raw_out.ndim != 2 or raw_out.shape[1] < 6:
        raise BadOutput(f"gave an array of shape {raw_out.shape} for a picture; cells × (5 + classes) is expected")
    if not np.isfinite(raw_out).all():
        raise BadOutput("gave boxes or scores that are not finite")
    centres, sides = raw_out[:, :2], raw_out[:, 2:4]
    if not decoded:
        cells, strides = _cells(size)
        if len(cells) != len(raw_out):
            raise BadOutput(
                f"gave {len(raw_out):,} cells; a picture of {size[0]}×{size[1]} has {len(cells):,} at strides 8, 16, 32"
            )
        centres = (centres + cells) * strides
        sides = np.exp(np.minimum(sides, 20.0)) * strides
    return np.concatenate([centres - sides / 2, centres + sides / 2], axis=1), raw_out[:, 4:5] * raw_out[:, 5:]


def _cells(size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return column and row of every cell, and the strides as A×1."""
    places, strides = [], []
    for stride in STRIDES:
        rows, columns = np.mgrid[: size[0] // stride, : size[1] // stride]
        places.append(np.stack([columns.ravel(), rows.ravel()], axis=1))
        strides.append(np.full((rows.size, 1), stride))
    return np.concatenate(places).astype(np.float64), np.concatenate(strides).astype(np.float64)


def above_score(boxes: Floats, scores: Floats, least: float) -> Detections:
    """Return each box with its best class if the score is high enough.

    Args:
        boxes: K×4.
        scores: K×C.
        least: Minimum score.
    """
    best = scores.argmax(axis=1)
    top = scores[np.arange(len(scores)), best]
    selected = np.flatnonzero(top >= least)
    return Detections(boxes=boxes[selected], scores=top[selected], labels=best[selected].astype(np.int64))


def suppressed(detections: Detections, overlap: float, most: int) -> Detections:
    """Return detections after greedy non-maximum suppression within each class, highest scores first.

    Args:
        detections: The detections; ties keep their order.
        overlap: Intersection over union above which the one with the lower score is dropped; 1 keeps all.
        most: Maximum number to return.
    """
    waiting = np.argsort(-detections.scores, kind="stable")
    boxes, labels = detections.boxes, detections.labels
    areas = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0), axis=1)
    selected: list[np.intp] = []
    while len(waiting) and len(selected) < most:
        first, waiting = waiting[0], waiting[1:]
        selected.append(first)
        low = np.maximum(boxes[first, :2], boxes[waiting, :2])
        high = np.minimum(boxes[first, 2:], boxes[waiting, 2:])
        shared = np.prod(np.maximum(high - low, 0.0), axis=1)
        union = np.maximum(areas[first] + areas[waiting] - shared, 1e-12)
        waiting = waiting[(shared / union <= overlap) | (labels[waiting] != labels[first])]
    return detections.kept(np.array(selected, np.intp))


def fractions(boxes: Floats, fit: BoxFit) -> Floats:
    """Return boxes from a network's pixels as fractions of the original picture, clipped to it."""
    scale = np.array([fit.across * fit.width, fit.down * fit.height] * 2)
    shares: Floats = np.clip(boxes / scale, 0.0, 1.0)
    return shares
