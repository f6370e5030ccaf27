"""Losses of a training step by family of networks.

PraNet and SSFormer are trained by the structure loss on every map. SANet is trained by cross-entropy and Dice on its
one map, resized to the mask. TGANet is trained by cross-entropy and Dice on its map, and by cross-entropy on its
predictions of number and size of the polyps, whose truth is derived from the mask.

:func:`loss_of` returns the loss of a family and :func:`answer_of` the answer's logits; further training builds on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from medtest.core.errors import MedtestError
from medtest.systems.segmentation.networks.answers import Outputs, answer_of
from medtest.training.segmentation.losses import batch_dice_loss, deep_loss, dice_loss

StepLoss: TypeAlias = "Callable[[Outputs, Tensor, Tensor], Tensor]"
"""Maps a network's outputs, the truth and the border weights (both float [B, 1, S, S]) to a loss."""

SMALL, LARGE = 0.10, 0.30
"""Shares of the image's area from which a polyp's box is medium and large (Tomar et al., MICCAI 2022, section 2.1)."""


def loss_of(family: str, *, auxiliary: float = 0.5, double_softmax: bool = True) -> StepLoss:
    """Return the loss of a family's training step.

    Args:
        family: ``pranet``, ``sanet``, ``tganet`` or ``ssformer``.
        auxiliary: Weight of PraNet's side maps; half the weight of each of TGANet's predictions, so that 0.5 is as
            published.
        double_softmax: Whether TGANet's predictions go through a softmax before the cross-entropy, which applies one
            itself, as in the published training.

    Raises:
        MedtestError: Unknown family.
    """
    if family in ("pranet", "ssformer"):
        return lambda outputs, truth, weights: deep_loss(outputs, truth, weights, auxiliary=auxiliary)
    if family == "sanet":
        return lambda outputs, truth, _: sanet_loss(outputs, truth)
    if family == "tganet":
        return lambda outputs, truth, _: tganet_loss(
            outputs, truth, judgements=2 * auxiliary, double_softmax=double_softmax
        )
    raise MedtestError(f"no training step is known for {family!r}")


def sanet_loss(outputs: Outputs, truth: Tensor) -> Tensor:
    """Return cross-entropy plus Dice per image of SANet's map, resized to the truth with corners aligned."""
    logits = answer_of("sanet", outputs, (truth.shape[2], truth.shape[3]))
    return functional.binary_cross_entropy_with_logits(logits, truth) + dice_loss(logits, truth)


def tganet_loss(outputs: Outputs, truth: Tensor, *, judgements: float = 1.0, double_softmax: bool = True) -> Tensor:
    """Return TGANet's loss: cross-entropy and Dice of the map, cross-entropy of number and size.

    Args:
        outputs: Logits of the mask, of the number [B, 2] and of the size [B, 3].
        truth: 0 or 1, [B, 1, S, S]; number and size are derived from it.
        judgements: Weight of the two predictions.
        double_softmax: See :func:`loss_of`.
    """
    mask, number, size = outputs
    loss = functional.binary_cross_entropy_with_logits(mask, truth) + batch_dice_loss(mask, truth)
    if judgements <= 0:
        return loss
    for term in judgement_losses((number, size), truth, double_softmax=double_softmax):
        loss = loss + judgements * term
    return loss


def judgement_losses(judgements: Sequence[Tensor], truth: Tensor, *, double_softmax: bool) -> list[Tensor]:
    """Return the cross-entropies of TGANet's number and size.

    Args:
        judgements: Logits of number [B, 2] and size [B, 3].
        truth: [B, 1, S, S]; number and size are derived from it.
        double_softmax: See :func:`loss_of`.
    """
    expected = [number_and_size(mask) for mask in (truth[:, 0] > 0.5).cpu().numpy()]
    terms = []
    for place, logits in enumerate(judgements):
        scores = torch.softmax(logits, dim=1) if double_softmax else logits
        terms.append(
            functional.cross_entropy(
                scores, torch.tensor([attributes[place] for attributes in expected], device=scores.device)
            )
        )
    return terms


def number_and_size(mask: NDArray[Any]) -> tuple[int, int]:
    """Return a mask's attributes: number (0 one, 1 multiple) and size (0 small, 1 medium, 2 large).

    As in TGANet's training: boxes around the outlines; "one" for exactly one box; the size is that of the last box's
    area over the image's. OpenCV lists outlines from the bottom of the image, so the last one is the topmost. A mask
    without a polyp counts as multiple and small, because it does not have exactly one box.

    Args:
        mask: bool H×W.
    """
    plane = np.ascontiguousarray(mask, np.uint8)
    outlines, _ = cv2.findContours(plane, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    if not outlines:
        return 1, 0
    _, _, width, height = cv2.boundingRect(outlines[-1])
    share = width * height / mask.size
    return int(len(outlines) != 1), 0 if share < SMALL else 1 if share < LARGE else 2
