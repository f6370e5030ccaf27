"""Extracts objects with boxes, scores and colours from the output maps of the network for drawn scenes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

from medtest.readers.pictures.bundled.network import STRIDES, SceneMaps

MOST: Final = 60
"""Maximum number of objects per picture; those with the highest scores are returned."""
SAME: Final = 0.5
"""If two boxes of a class have a larger intersection over union, the one with the lower score is dropped."""
SAME_PLACE: Final = 0.75
"""The same for two boxes of any classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedObject:
    """A detected object.

    Attributes:
        label: Index of its class.
        colour: Index of its colour.
        score: 0 to 1.
        box: Left, top, right and bottom in pixels of the network's input.
    """

    label: int
    colour: int
    score: float
    box: tuple[float, float, float, float]


def detected_objects(maps: Sequence[SceneMaps], threshold: float) -> list[list[DetectedObject]]:
    """Return the objects in each picture of a batch, highest scores first.

    Args:
        maps: Maps of each stride.
        threshold: Lowest score.
    """
    detected: list[list[DetectedObject]] = [[] for _ in range(len(maps[0].heat))]
    for stride, level in zip(STRIDES, maps, strict=True):
        scores = torch.sigmoid(level.heat)
        tops = functional.max_pool2d(scores, 3, stride=1, padding=1)
        picture, label, row, column = torch.nonzero((scores == tops) & (scores >= threshold), as_tuple=True)
        edges = level.edges[picture, :, row, column]
        x, y = ((place + 0.5) * stride for place in (column, row))
        boxes = torch.stack([x - edges[:, 0], y - edges[:, 1], x + edges[:, 2], y + edges[:, 3]], dim=1)
        colours = level.colours[picture, :, row, column].argmax(dim=1)
        rows = zip(
            *(_listed(values) for values in (picture, label, colours, scores[picture, label, row, column], boxes)),
            strict=True,
        )
        for index, name, colour, score, box in rows:
            detected[index].append(DetectedObject(label=name, colour=colour, score=score, box=tuple(box)))
    return [_without_duplicates(sorted(objects, key=lambda detection: -detection.score)) for objects in detected]


def _listed(values: Tensor) -> list[Any]:
    return values.cpu().tolist()


def _without_duplicates(ordered: Sequence[DetectedObject]) -> list[DetectedObject]:
    selected: list[DetectedObject] = []
    for detection in ordered:
        if not any(_is_duplicate(detection, other) for other in selected):
            selected.append(detection)
    return selected[:MOST]


def _is_duplicate(detection: DetectedObject, other: DetectedObject) -> bool:
    return overlap(detection.box, other.box) > (SAME if detection.label == other.label else SAME_PLACE)


def overlap(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the intersection of two boxes divided by their union."""
    width, height = (max(min(first[i + 2], second[i + 2]) - max(first[i], second[i]), 0.0) for i in (0, 1))
    shared = width * height
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second))
    return shared / (areas - shared) if areas > shared else 0.0
