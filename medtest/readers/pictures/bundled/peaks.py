"""What the maps of the network of drawn scenes say: things with boxes, scores and colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

from medtest.readers.pictures.bundled.network import STRIDES, SceneMaps

MOST: Final = 60
"""Things told of one picture at most, those of the highest scores."""
SAME: Final = 0.5
"""Of two boxes of a class with a larger intersection over union the less sure one is none."""
SAME_PLACE: Final = 0.75
"""So it is with two boxes of whatever classes above this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundThing:
    """A thing that was found.

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
    """Return what there is in each picture of a batch, the surest first.

    Args:
        maps: Of each stride.
        threshold: Lowest score.
    """
    found: list[list[FoundThing]] = [[] for _ in range(len(maps[0].heat))]
    for stride, level in zip(STRIDES, maps, strict=True):
        scores = torch.sigmoid(level.heat)
        tops = functional.max_pool2d(scores, 3, stride=1, padding=1)
        picture, label, row, column = torch.nonzero((scores == tops) & (scores >= threshold), as_tuple=True)
        edges = level.edges[picture, :, row, column]
        x, y = ((place + 0.5) * stride for place in (column, row))
        boxes = torch.stack([x - edges[:, 0], y - edges[:, 1], x + edges[:, 2], y + edges[:, 3]], dim=1)
        colours = level.colours[picture, :, row, column].argmax(dim=1)
        rows = zip(
            *(_listed(one) for one in (picture, label, colours, scores[picture, label, row, column], boxes)),
            strict=True,
        )
        for index, name, colour, score, box in rows:
            found[index].append(FoundThing(label=name, colour=colour, score=score, box=tuple(box)))
    return [_alone(sorted(one, key=lambda thing: -thing.score)) for one in found]


def _listed(values: Tensor) -> list[Any]:
    listed: list[Any] = values.cpu().tolist()
    return listed


def _alone(ordered: Sequence[FoundThing]) -> list[FoundThing]:
    kept: list[FoundThing] = []
    for one in ordered:
        if not any(_repeats(one, other) for other in kept):
            kept.append(one)
    return kept[:MOST]


def _repeats(one: FoundThing, other: FoundThing) -> bool:
    return overlap(one.box, other.box) > (SAME if one.label == other.label else SAME_PLACE)


def overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the intersection of two boxes over their union."""
    width, height = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0.0) * max(height, 0.0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return shared / (areas - shared) if areas > shared else 0.0
