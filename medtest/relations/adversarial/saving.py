"""From pixels in floating point to what is saved, and back: 8 bits, within the budget as whole numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from medtest.cases import Image

if TYPE_CHECKING:
    from torch import Tensor


def pixels_of(image: Image, device: str = "cpu") -> Tensor:
    """Return an image, uint8 H×W×3, as a probe takes it: float32 1×3×H×W in [0, 1]."""  # noqa: RUF002
    import torch

    levels = torch.from_numpy(np.array(image)).to(device)
    return levels.permute(2, 0, 1)[None].float().div(255)


def saved(pixels: Tensor, source: Image, epsilon: float) -> Image:
    """Return pixels as they are saved: rounded to 8 bits, no channel further than ⌊ε⌋ levels from the source.

    Args:
        pixels: float 1×3×H×W in [0, 1].
        source: uint8 H×W×3, the image that was attacked.
        epsilon: ε, in levels of 255; of one that is no whole number, the whole levels within it.
    """  # noqa: RUF002
    levels = (pixels[0].detach().double() * 255.0).round().permute(1, 2, 0).cpu().numpy().astype(np.int16)
    within = math.floor(epsilon + 1e-9)
    low = np.maximum(source.astype(np.int16) - within, 0)
    high = np.minimum(source.astype(np.int16) + within, 255)
    return np.ascontiguousarray(np.clip(levels, low, high).astype(np.uint8))
