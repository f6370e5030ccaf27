"""Losses of AttnMel's training (Yan et al., IPMI 2019; its published code): focal, and Dice of the attention."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

MAP_WEIGHTS = (0.001, 0.01)
"""Weights of the first and the second attention's Dice in the published training on ISIC 2017."""


def focal_loss(logits: Tensor, targets: Tensor, *, gamma: float = 2.0) -> Tensor:
    """Return the focal loss of the softmax, averaged over the batch: -(1 - p)^gamma · log p of the true class.

    Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017, eq. 4, with classes instead of two states.

    Args:
        logits: [B, C].
        targets: Index of the true class, int64 [B].
        gamma: 0 is cross-entropy; larger values reduce the weight of examples already classified correctly.
    """
    log_true = functional.log_softmax(logits, dim=1).gather(1, targets[:, None])[:, 0]
    # 1 - exp(log p) keeps its precision near p = 1.
    return (torch.expm1(log_true).neg() ** gamma * -log_true).mean()


def attention_dice_loss(weights: Tensor, masks: Tensor) -> Tensor:
    """Return 1 - Dice between an attention map and the lesion's mask, averaged over the batch.

    Args:
        weights: [B, 1, h, w] in [0, 1], one of the network's attention maps.
        masks: float [B, 1, H, W] in [0, 1], resized to the map by averaging.
    """
    small = functional.adaptive_avg_pool2d(masks, (int(weights.shape[2]), int(weights.shape[3])))
    both = (weights * small).sum(dim=(1, 2, 3))
    sizes = (weights + small).sum(dim=(1, 2, 3))
    return (1.0 - 2.0 * both / sizes.clamp_min(1e-6)).mean()


def attnmel_loss(
    outputs: Sequence[Tensor], targets: Tensor, masks: Tensor | None = None, *, gamma: float | None = 2.0
) -> Tensor:
    """Return the loss of one step of AttnMel's training.

    Args:
        outputs: The network's outputs: logits [B, C] and two attention maps.
        targets: Index of the true class, int64 [B].
        masks: The lesions' masks, float [B, 1, H, W], if they guide the attention (:data:`MAP_WEIGHTS`).
        gamma: Exponent of the focal loss; None for cross-entropy.
    """
    logits, *maps = outputs
    loss = functional.cross_entropy(logits, targets) if gamma is None else focal_loss(logits, targets, gamma=gamma)
    if masks is not None:
        for share, weights in zip(MAP_WEIGHTS, maps, strict=True):
            loss = loss + share * attention_dice_loss(weights, masks)
    return loss
