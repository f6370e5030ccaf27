"""Boxes of detectors: pictures brought to a network's size, and what networks give brought back to pictures.

Pure functions on arrays; boxes are float64 K×4, left, top, right, bottom, in pixels unless it says fractions.
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
"""Grey of what is added to a picture beside it, as YOLO networks are trained."""


@dataclass(frozen=True, kw_only=True)
class Detections:
    """What a network found in a picture.

    Attributes:
        boxes: float64 K×4, fractions of the picture.
        scores: float64 K, 0 to 1.
        labels: int64 K, indices of classes.
    """

    boxes: Floats
    scores: Floats
    labels: NDArray[np.int64]

    def kept(self, order: NDArray[np.intp]) -> Detections:
        """Return some of them, in an order."""
        return Detections(boxes=self.boxes[order], scores=self.scores[order], labels=self.labels[order])


@dataclass(frozen=True, slots=True)
class BoxFit:
    """How a picture was brought to a network's size.

    Attributes:
        height: Of the picture, pixels.
        width: Of the picture, pixels.
        down: What its rows were multiplied with.
        across: What its columns were multiplied with.
    """

    height: int
    width: int
    down: float
    across: float


def letterboxed(image: Image, size: tuple[int, int]) -> tuple[Image, BoxFit]:
    """Return a picture in the upper left corner of one of a network's size, its proportions kept, the rest grey.

    As YOLOX does (Z. Ge et al., 2021, ``preproc``): sides are cut to whole pixels, pixels are interpolated linearly.

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
    """Return a picture at a network's size, its proportions lost, and how it was brought there."""
    height, width = image.shape[:2]
    shown = cv2.resize(image, (size[1], size[0]), interpolation=cv2.INTER_LINEAR)
    return shown, BoxFit(height, width, size[0] / height, size[1] / width)


def yolox_boxes(output: NDArray[np.floating], size: tuple[int, int], *, decoded: bool) -> tuple[Floats, Floats]:
    """Return boxes and classes' scores of what a YOLOX network gives for one picture.

    A cell at column x and row y of a grid of stride s gives dx, dy, dw, dh: the box is centred at (x + dx) s,
    (y + dy) s and e^dw s wide, e^dh s high; a class's score is the cell's objectness times the class's.

    Args:
        output: A×(5+C), cells of the strides 8, 16 and 32 one after the other, rows before columns.
        size: Height and width that the network was given.
        decoded: Whether the graph has done that already: centres, widths and heights are in pixels.

    Returns:
        Boxes A×4 in the network's pixels, scores A×C.

    Raises:
        BadOutput: There are other cells than those of the strides, or what is given is not finite.
    """
    given = np.asarray(output, np.float64)
    if given.ndim != 2 or given.shape[1] < 6:
        raise BadOutput(f"gave an array of shape {given.shape} for a picture; cells × (5 + classes) is expected")
    if not np.isfinite(given).all():
        raise BadOutput("gave boxes or scores that are not finite")
    centres, sides = given[:, :2], given[:, 2:4]
    if not decoded:
        cells, strides = _cells(size)
        if len(cells) != len(given):
            raise BadOutput(
                f"gave {len(given):,} cells; a picture of {size[0]}×{size[1]} has {len(cells):,} at strides 8, 16, 32"
            )
        centres = (centres + cells) * strides
        sides = np.exp(np.minimum(sides, 20.0)) * strides
    return np.concatenate([centres - sides / 2, centres + sides / 2], axis=1), given[:, 4:5] * given[:, 5:]


def _cells(size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return column and row of every cell, and its stride A×1."""
    places, strides = [], []
    for stride in STRIDES:
        rows, columns = np.mgrid[: size[0] // stride, : size[1] // stride]
        places.append(np.stack([columns.ravel(), rows.ravel()], axis=1))
        strides.append(np.full((rows.size, 1), stride))
    return np.concatenate(places).astype(np.float64), np.concatenate(strides).astype(np.float64)


def above_score(boxes: Floats, scores: Floats, least: float) -> Detections:
    """Return each box with its best class, where that has at least a score.

    Args:
        boxes: K×4.
        scores: K×C.
        least: The score.
    """
    best = scores.argmax(axis=1)
    top = scores[np.arange(len(scores)), best]
    kept = np.flatnonzero(top >= least)
    return Detections(boxes=boxes[kept], scores=top[kept], labels=best[kept].astype(np.int64))


def suppressed(found: Detections, overlap: float, most: int) -> Detections:
    """Return detections without those that overlap a surer one of their class, surest first (greedy suppression).

    Args:
        found: What was found; ties keep their order.
        overlap: Intersection over union above which the less sure one goes; 1 keeps all.
        most: How many are kept at most.
    """
    waiting = np.argsort(-found.scores, kind="stable")
    boxes, labels = found.boxes, found.labels
    areas = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0), axis=1)
    kept: list[np.intp] = []
    while len(waiting) and len(kept) < most:
        first, waiting = waiting[0], waiting[1:]
        kept.append(first)
        low = np.maximum(boxes[first, :2], boxes[waiting, :2])
        high = np.minimum(boxes[first, 2:], boxes[waiting, 2:])
        shared = np.prod(np.maximum(high - low, 0.0), axis=1)
        union = np.maximum(areas[first] + areas[waiting] - shared, 1e-12)
        waiting = waiting[(shared / union <= overlap) | (labels[waiting] != labels[first])]
    return found.kept(np.array(kept, np.intp))


def fractions(boxes: Floats, fit: BoxFit) -> Floats:
    """Return boxes in a network's pixels as fractions of the picture that it was given, cut to it."""
    scale = np.array([fit.across * fit.width, fit.down * fit.height] * 2)
    shares: Floats = np.clip(boxes / scale, 0.0, 1.0)
    return shares
