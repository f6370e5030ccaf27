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
class FoundThing:
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


def things(maps: Sequence[SceneMaps], threshold: float) -> list[list[FoundThing]]:
    """Return the objects in each picture of a batch, highest scores first.

    Args:
        maps: Maps of each stride.
        threshold: Lowest score.
    """
    found_things: list[list[FoundThing]] = [[] for _ in range(len(maps[0].heat))]
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
            found_things[index].append(FoundThing(label=name, colour=colour, score=score, box=tuple(box)))
    return [
        _without_duplicates(sorted(picture_things, key=lambda thing: -thing.score)) for picture_things in found_things
    ]


def _listed(values: Tensor) -> list[Any]:
    return values.cpu().tolist()


def _without_duplicates(ordered: Sequence[FoundThing]) -> list[FoundThing]:
    selected: list[FoundThing] = []
    for thing in ordered:
        if not any(_is_duplicate(thing, other) for other in selected):
            selected.append(thing)
    return selected[:MOST]


def _is_duplicate(thing: FoundThing, other: FoundThing) -> bool:
    return overlap(thing.box, other.box) > (SAME if thing.label == other.label else SAME_PLACE)


def overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the intersection of two boxes divided by their union."""
    width, height = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0.0) * max(height, 0.0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return shared / (areas - shared) if areas > shared else 0.0
