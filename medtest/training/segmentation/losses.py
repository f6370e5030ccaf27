"""Losses of segmentation training."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

BOX = 31
"""Side in pixels of the box blur that detects a mask's border, as used by PraNet's authors at 352 pixels."""
EMPTY_SMOOTHING = 0.01
"""Share of an image's weight that smooths the IoU of an image without lesion (see :func:`structure_loss`)."""


def border_weights(mask: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return per-pixel weights 1 + 5·|blur(m) - m|, high near the mask's border.

    Wei et al., "F3Net: Fusion, Feedback and Focus for Salient Object Detection", AAAI 2020, eq. 8, adopted by PraNet.
    One box blur that includes zero padding, like the average pooling of that recipe.

    Args:
        mask: uint8 H×W, 0 or 255.

    Returns:
        float32 H×W in [1, 6].
    """
    truth = (mask > 127).astype(np.float32)
    blurred = cv2.blur(truth, (BOX, BOX), borderType=cv2.BORDER_CONSTANT)
    return np.asarray(1.0 + 5.0 * np.abs(blurred - truth), np.float32)


def structure_loss(logits: Tensor, truth: Tensor, weights: Tensor) -> Tensor:
    """Return the structure loss: weighted cross-entropy plus weighted IoU, each averaged over the batch.

    The IoU is smoothed by 1, as in the official recipes, if there is a lesion. Without one, 1 - 1 / (U + 1) is flat for
    every false region larger than a few pixels and gives no gradient; the smoothing is then a hundredth of the image,
    so
    that a smaller false region is better than a larger one.

    Args:
        logits: [B, 1, H, W].
        truth: 0 or 1, same shape.
        weights: From :func:`border_weights`, same shape.
    """
    entropy = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    total = weights.sum(dim=(2, 3))
    weighted_entropy = (weights * entropy).sum(dim=(2, 3)) / total
    probability = torch.sigmoid(logits)
    both = (probability * truth * weights).sum(dim=(2, 3))
    either = ((probability + truth) * weights).sum(dim=(2, 3)) - both
    smoothing = torch.where(truth.sum(dim=(2, 3)) > 0, torch.ones_like(total), EMPTY_SMOOTHING * total)
    return (weighted_entropy + 1.0 - (both + smoothing) / (either + smoothing)).mean()


def deep_loss(outputs: Tensor | Sequence[Tensor], truth: Tensor, weights: Tensor, *, auxiliary: float) -> Tensor:
    """Return the structure loss of the answer plus a share of that of each auxiliary map.

    Args:
        outputs: One logit map, or several of which the last is the answer.
        truth: 0 or 1, [B, 1, H, W].
        weights: From :func:`border_weights`, [B, 1, H, W].
        auxiliary: Weight of every map but the last. These are smooth, so they are compared at half the resolution.
    """
    maps = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    loss = structure_loss(maps[-1], truth, weights)
    if len(maps) > 1 and auxiliary > 0:
        small = (truth[..., ::2, ::2], weights[..., ::2, ::2])
        for extra in maps[:-1]:
            loss = loss + auxiliary * structure_loss(extra[..., ::2, ::2], *small)
    return loss


def dice_loss(logits: Tensor, truth: Tensor) -> Tensor:
    """Return 1 - Dice of each image's probabilities, averaged over the batch, smoothed by 1 in the denominator.

    Wei et al., "Shallow Attention Network for Polyp Segmentation", MICCAI 2021, as in its published training.
    """
    probability = torch.sigmoid(logits)
    both = (probability * truth).sum(dim=(1, 2, 3))
    sizes = (probability + truth).sum(dim=(1, 2, 3))
    return (1.0 - 2.0 * both / (sizes + 1.0)).mean()


def batch_dice_loss(logits: Tensor, truth: Tensor) -> Tensor:
    """Return 1 - Dice over all pixels of the batch, smoothed by 1 in numerator and denominator (TGANet's training)."""
    probability = torch.sigmoid(logits)
    both = (probability * truth).sum()
    return 1.0 - (2.0 * both + 1.0) / (probability.sum() + truth.sum() + 1.0)
