"""Which of a network's outputs is its answer."""

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
        outputs: What the network gave.
        size: Height and width wanted; maps of another size are resized as the family's authors do (bilinear, corners
            aligned for SANet). As it comes where None.
    """
    if isinstance(outputs, Tensor):
        logits = outputs
    else:
        logits = outputs[0] if family == "tganet" else outputs[-1]
    if size is None or tuple(logits.shape[2:]) == tuple(size):
        return logits
    return functional.interpolate(logits, size=size, mode="bilinear", align_corners=family == "sanet")
