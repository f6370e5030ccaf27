"""Losses of the recipes, including quirks of the published code."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from medtest.systems.segmentation.networks.answers import Outputs
from medtest.training.further.recipe import Loss, Quirks
from medtest.training.segmentation.losses import BOX, batch_dice_loss, dice_loss
from medtest.training.segmentation.steps import judgement_losses


def answers_of(family: str, outputs: Outputs) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return a network's maps and judgements, in float32.

    Args:
        family: ``pranet``, ``sanet``, ``tganet`` or ``ssformer``.
        outputs: Output of its ``forward``.

    Returns:
        Logits of the mask, B×1×h×w each, of which the last is the answer and the others are side maps; logits of number
        B×2 and size B×3, for networks that predict them.
    """
    tensors = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    whole = tuple(tensor.float() for tensor in tensors)
    return (whole[:1], whole[1:]) if family == "tganet" else (whole, ())


def border_weights(masks: Tensor) -> Tensor:
    """Return per-pixel weights 1 + 5·|mean(m) - m|, high near a mask's border, for masks of values in [0, 1].

    Wei et al., "F3Net", AAAI 2020, eq. 8, adopted by PraNet: means over 31×31 pixels, including zero padding. Computed
    axis by axis, which gives the same mean thirty times faster.

    Args:
        masks: float [B, 1, H, W].
    """
    rows = functional.avg_pool2d(masks, (BOX, 1), stride=1, padding=(BOX // 2, 0))
    means = functional.avg_pool2d(rows, (1, BOX), stride=1, padding=(0, BOX // 2))
    return 1.0 + 5.0 * (means - masks).abs()


def recipe_loss(
    maps: Sequence[Tensor],
    truth: Tensor,
    loss: Loss,
    quirks: Quirks,
    *,
    family: str,
    judgements: Sequence[Tensor] = (),
) -> Tensor:
    """Return the loss of one step.

    Args:
        maps: The network's maps, the answer last.
        truth: float [B, 1, H, W], 0 or 1, or between under ``soft_masks``.
        loss: The loss terms.
        quirks: Oddities of the published code to reproduce.
        family: SANet's maps are resized with corners aligned.
        judgements: The network's judgements, if any.
    """
    size = (int(truth.shape[2]), int(truth.shape[3]))
    weights = border_weights(truth) if loss.map == "structure" else None
    total = _map_loss(_at(maps[-1], size, family), truth, weights, loss, quirks)
    if loss.auxiliary > 0:
        for side in maps[:-1]:
            total = total + loss.auxiliary * _map_loss(_at(side, size, family), truth, weights, loss, quirks)
    if judgements and loss.judgements > 0:
        terms = judgement_losses(tuple(judgements), truth, double_softmax=quirks.double_softmax)
        total = total + loss.judgements * torch.stack(terms).sum()
    return total


def _at(logits: Tensor, size: tuple[int, int], family: str) -> Tensor:
    if (int(logits.shape[2]), int(logits.shape[3])) == size:
        return logits
    return functional.interpolate(logits, size=size, mode="bilinear", align_corners=family == "sanet")


def _map_loss(logits: Tensor, truth: Tensor, weights: Tensor | None, loss: Loss, quirks: Quirks) -> Tensor:
    if quirks.double_sigmoid:
        logits = torch.sigmoid(logits)
    if weights is not None:
        return structure_loss(logits, truth, weights, mean_cross_entropy=quirks.mean_cross_entropy)
    entropy = functional.binary_cross_entropy_with_logits(logits, truth)
    if loss.map == "bce_dice":
        return entropy + dice_loss(logits, truth)
    if loss.map == "bce_batch_dice":
        return entropy + batch_dice_loss(logits, truth)
    return entropy + pixel_dice_loss(logits, truth)


def structure_loss(logits: Tensor, truth: Tensor, weights: Tensor, *, mean_cross_entropy: bool) -> Tensor:
    """Return weighted cross-entropy plus weighted IoU, each averaged over the batch.

    Args:
        logits: [B, 1, H, W].
        truth: In [0, 1], same shape.
        weights: From :func:`border_weights`.
        mean_cross_entropy: Whether the cross-entropy is the batch's plain mean, as in PraNet's published code.
    """
    entropy = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    if mean_cross_entropy:
        first = entropy.mean()
    else:
        first = ((weights * entropy).sum(dim=(2, 3)) / weights.sum(dim=(2, 3))).mean()
    probability = torch.sigmoid(logits)
    both = (probability * truth * weights).sum(dim=(2, 3))
    either = ((probability + truth) * weights).sum(dim=(2, 3)) - both
    return first + (1.0 - (both + 1.0) / (either + 1.0)).mean()


def pixel_dice_loss(logits: Tensor, truth: Tensor) -> Tensor:
    """Return the mean over pixels of 1 - (2pm + 1)/(p + m + 1), as in SSFormer's training."""
    probability = torch.sigmoid(logits)
    return (1.0 - (2.0 * probability * truth + 1.0) / (probability + truth + 1.0)).mean()
