"""Layers shared by several families of networks; imports torch."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def enlarged(x: Tensor, factor: int = 2) -> Tensor:
    """Return maps enlarged bilinearly with their corners aligned: [B, C, H, W] to [B, C, H × factor, W × factor]."""
    return functional.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=True)
