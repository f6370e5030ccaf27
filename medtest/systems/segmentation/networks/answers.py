"""Selection of a network's final output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from torch import Tensor
from torch.nn import functional

Outputs: TypeAlias = "Tensor | Sequence[Tensor]"


def answer_of(family: str, outputs: Outputs, size: tuple[int, int] | None = None) -> Tensor:
    """Return the logits of a network's answer, [B, 1, h, w].

    Args:
        family: ``pranet``, ``sanet``, ``tganet`` or ``ssformer``.
        outputs: Output of the network.
        size: Target height and width; other maps are resized as the family's authors do (bilinear, corners aligned for
            SANet). None keeps the size.
    """
    if isinstance(outputs, Tensor):
        logits = outputs
    else:
        logits = outputs[0] if family == "tganet" else outputs[-1]
    if size is None or tuple(logits.shape[2:]) == tuple(size):
        return logits
    return functional.interpolate(logits, size=size, mode="bilinear", align_corners=family == "sanet")
