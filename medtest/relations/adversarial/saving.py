"""Conversion between floating-point pixels and saved 8-bit images, within the ε budget in whole levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from medtest.core.cases import Image
from medtest.core.deferred import torch

if TYPE_CHECKING:
    from torch import Tensor


def pixels_of(image: Image, device: str = "cpu") -> Tensor:
    """Return a uint8 H×W×3 image in a probe's input format: float32 1×3×H×W in [0, 1]."""
    levels = torch.from_numpy(np.array(image)).to(device)
    return levels.permute(2, 0, 1)[None].float().div(255)


def saved(pixels: Tensor, source: Image, epsilon: float, *, norm: str = "linf") -> Image:
    """Return pixels as saved: rounded to 8 bits and still within ε of the source.

    For L∞ no channel differs by more than ⌊ε⌋ levels from the source. For L2 the values whose rounding increased the
    distance most step back by one level, one after the other, until the image is within ε.

    Args:
        pixels: float 1×3×H×W in [0, 1].
        source: uint8 H×W×3, the image that was attacked.
        epsilon: ε, in levels of 255; a fractional L∞ bound is rounded down.
        norm: ``linf`` or ``l2`` (over all pixels and channels).
    """
    if norm == "l2":
        return _saved_l2(pixels, source, epsilon)
    levels = (pixels[0].detach().double() * 255.0).round().permute(1, 2, 0).cpu().numpy().astype(np.int16)
    within = math.floor(epsilon + 1e-9)
    low = np.maximum(source.astype(np.int16) - within, 0)
    high = np.minimum(source.astype(np.int16) + within, 255)
    return np.ascontiguousarray(np.clip(levels, low, high).astype(np.uint8))


def within_budget(image: Image, source: Image, epsilon: float, *, norm: str = "linf") -> bool:
    """Return True if an image may be a result of :func:`saved`: of the source's size and within ε of it.

    Args:
        image: uint8.
        source: uint8 H×W×3, the image that was attacked.
        epsilon: ε, in levels of 255.
        norm: ``linf`` or ``l2``.
    """
    if image.shape != source.shape or image.dtype != source.dtype:
        return False
    away = image.astype(np.int64) - source
    if norm == "l2":
        return float((away * away).sum()) <= epsilon * epsilon + 1e-3
    return int(np.abs(away).max(initial=0)) <= math.floor(epsilon + 1e-4)


def _saved_l2(pixels: Tensor, source: Image, epsilon: float) -> Image:
    exact = (pixels[0].detach().double() * 255.0).permute(1, 2, 0).cpu().numpy().clip(0, 255)
    away = np.rint(exact).astype(np.int64) - source
    further = np.abs(away) - np.abs(exact - source)
    order = np.argsort(-further, axis=None, kind="stable")
    flat = away.reshape(-1)
    bound = epsilon * epsilon + 1e-9
    while (excess := float(flat @ flat) - bound) > 0:
        nonzero = order[flat[order] != 0]
        gains = np.cumsum(2 * np.abs(flat[nonzero]) - 1)  # reduction of the sum of squares by a step back
        count = int(np.searchsorted(gains, excess)) + 1
        flat[nonzero[:count]] -= np.sign(flat[nonzero[:count]])
    return np.ascontiguousarray((source + away).astype(np.uint8))
