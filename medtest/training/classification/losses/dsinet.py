"""Losses of DSI-Net's training (Zhu, Chen and Yuan, IEEE TMI 2021; its published code)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

Pooling: TypeAlias = Literal["released", "mean"]
INTERACTION = 0.05
"""Weight of the interaction in the published training."""
LITTLE = 1e-5


def dice_losses(logits: Tensor, masks: Tensor) -> Tensor:
    """Return 1 - Dice of each image, the mean of background's and lesion's, [B].

    Only the sum of sizes is smoothed: without a lesion, the lesion's term is 1 for any answer.

    Args:
        logits: Of background and lesion, [B, 2, H, W].
        masks: 0 or 1, float [B, 1, H, W].
    """
    shares = torch.softmax(logits, dim=1).flatten(2)
    truth = torch.cat([1 - masks, masks], dim=1).flatten(2)
    both = (shares * truth).sum(dim=2)
    sizes = shares.sum(dim=2) + truth.sum(dim=2)
    return (1 - 2 * both / (sizes + LITTLE)).mean(dim=1)


def interaction_loss(classes: Tensor, segmentation: Tensor, truth: Tensor, *, pooling: Pooling = "released") -> Tensor:
    """Return the disagreement of the two tasks about the presence of a lesion: half the sum of two divergences.

    Each task has two logits: the classes' are the normal one's and the sum of all others'; the segmentation's are
    pooled
    over all pixels. KL(classes ‖ segmentation) counts if the classes are right about it, KL(segmentation ‖ classes) if
    the segmentation is. Averaged over the batch.

    Args:
        classes: Logits, [B, C]; the first class is the normal one.
        segmentation: Logits of background and lesion, [B, 2, H, W].
        truth: Index of the true class, int64 [B].
        pooling: ``released`` divides the logarithm of the pixels' sum by their number, as in the published code: at
            256×256 pixels both logits are near 0, and the segmentation is undecided in every image. ``mean`` uses the
            logarithm of their mean.
    """
    folded = torch.stack([classes[:, 0], classes[:, 1:].sum(dim=1)], dim=1)
    pixels = segmentation.shape[2] * segmentation.shape[3]
    summed = torch.logsumexp(segmentation, dim=(2, 3))
    pooled = summed / pixels if pooling == "released" else summed - torch.log(torch.tensor(float(pixels)))
    by_class, by_map = torch.log_softmax(folded, dim=1), torch.log_softmax(pooled, dim=1)
    normal = truth == 0
    class_right = (folded[:, 0] > folded[:, 1]) == normal
    map_right = (pooled[:, 0] > pooled[:, 1]) == normal
    from_class = (by_class.exp() * (by_class - by_map)).sum(dim=1)
    from_map = (by_map.exp() * (by_map - by_class)).sum(dim=1)
    return (from_class * class_right + from_map * map_right).mean() / 2


def dsinet_loss(
    outputs: tuple[Tensor, Tensor, Tensor],
    truth: Tensor,
    masks: Tensor,
    has_mask: Tensor | None = None,
    *,
    segmentation: float = 1.0,
    interaction: float = INTERACTION,
    pooling: Pooling = "released",
) -> Tensor:
    """Return the loss of one step of DSI-Net's training: cross-entropy, Dice of both maps, and the interaction.

    Args:
        outputs: The network's outputs: coarse and fine map [B, 2, H, W] and classes [B, C], all as logits.
        truth: Index of the true class, int64 [B].
        masks: The lesions' masks, 0 or 1, float [B, 1, H, W].
        has_mask: Whether an image has a mask, bool [B]; the others are excluded from Dice. None: all have one.
        segmentation: Weight of both Dice losses; 1 as published.
        interaction: Weight of :func:`interaction_loss`.
        pooling: See :func:`interaction_loss`.
    """
    coarse, fine, classes = outputs
    loss = functional.cross_entropy(classes, truth)
    weights = torch.ones_like(truth) if has_mask is None else has_mask
    weights = weights.to(classes.dtype)
    if segmentation > 0:
        dice = dice_losses(coarse, masks) + dice_losses(fine, masks)
        loss = loss + segmentation * (weights * dice).sum() / weights.sum().clamp(min=1)
    if interaction > 0:
        loss = loss + interaction * interaction_loss(classes, fine, truth, pooling=pooling)
    return loss
