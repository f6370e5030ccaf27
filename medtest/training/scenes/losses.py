"""Loss of the scene network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from medtest.readers.pictures.bundled.network import SceneMaps
from medtest.training.scenes.pictures import Targets

EDGES, COLOURS = 2.0, 1.0
"""Weights of the two parts relative to that of the peaks."""


def scene_loss(outputs: Sequence[SceneMaps], targets: Sequence[Targets]) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return the loss of a batch and its three parts.

    Peaks: the focal loss of CornerNet (H. Law, J. Deng, ECCV 2018, equation 1: α = 2, β = 4), over the number of
    things. Edges: 1 - GIoU (H. Rezatofighi et al., CVPR 2019) over a thing's central cells. Colours: cross-entropy over
    the same cells.

    Args:
        outputs: The network's maps of each stride.
        targets: Their targets.
    """
    peaks, edges, colours, total_things = [], [], [], torch.zeros(())
    for maps, target in zip(outputs, targets, strict=True):
        heat = torch.from_numpy(target.heat).to(maps.heat.device)
        weight = torch.from_numpy(target.weight).to(heat.device)
        total_things = total_things.to(heat.device) + (heat == 1).sum()
        peaks.append(_focal(maps.heat, heat))
        chosen = weight > 0
        share = weight[chosen]
        predicted = maps.edges.permute(0, 2, 3, 1)[chosen]
        expected = torch.from_numpy(target.edges).to(heat.device).permute(0, 2, 3, 1)[chosen]
        edges.append(((1.0 - _giou(predicted, expected)) * share).sum())
        colour_logits = maps.colours.permute(0, 2, 3, 1)[chosen]
        named = torch.from_numpy(target.colours).to(heat.device)[chosen]
        colours.append((functional.cross_entropy(colour_logits, named, reduction="none") * share).sum())
    count = total_things.clamp(min=1)
    parts = {"peaks": sum(peaks) / count, "edges": sum(edges) / count, "colours": sum(colours) / count}
    whole: Tensor = parts["peaks"] + EDGES * parts["edges"] + COLOURS * parts["colours"]
    return whole, parts


def _focal(logits: Tensor, heat: Tensor) -> Tensor:
    yes, no = functional.logsigmoid(logits), functional.logsigmoid(-logits)
    chance = torch.sigmoid(logits)
    at = (heat == 1).to(logits.dtype)
    centres = yes * (1.0 - chance).square() * at
    others = no * chance.square() * (1.0 - heat).pow(4) * (1.0 - at)
    return -(centres + others).sum()


def _giou(predicted: Tensor, expected: Tensor) -> Tensor:
    """Return the generalised intersection over union of boxes given by their edges' distances from one point."""
    first, second = ((box[:, 0] + box[:, 2]) * (box[:, 1] + box[:, 3]) for box in (predicted, expected))
    least, most = torch.minimum(predicted, expected), torch.maximum(predicted, expected)
    shared = (least[:, 0] + least[:, 2]) * (least[:, 1] + least[:, 3])
    around = (most[:, 0] + most[:, 2]) * (most[:, 1] + most[:, 3])
    union = first + second - shared
    return shared / union - (around - union) / around
