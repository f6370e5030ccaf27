"""Losses of CheXNet's training (Rajpurkar et al., arXiv 1711.05225): binary cross-entropy of every finding."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def findings_loss(logits: Tensor, truth: Tensor, positive_share: Tensor | None = None) -> Tensor:
    """Return the binary cross-entropy, averaged over batch and findings.

    Args:
        logits: [B, C], inputs of the network's sigmoid
            (:meth:`medtest.systems.classification.networks.chexnet.CheXNet.logits`).
        truth: 0 or 1, float [B, C].
        positive_share: Share of training images that show each finding, [C] in (0, 1): if given, the two states are
            weighted by the other's share as in eq. 1 of the paper, so that a rare finding counts as much as its
            absence. Means are then over terms whose weights average 2·share·(1 - share).
    """
    if positive_share is None:
        return functional.binary_cross_entropy_with_logits(logits, truth)
    present = positive_share.to(logits)
    weights = truth * (1.0 - present) + (1.0 - truth) * present
    return functional.binary_cross_entropy_with_logits(logits, truth, weight=weights)


def positive_shares(truth: Tensor, *, least: float = 0.01) -> Tensor:
    """Return the share of images that show each finding, clipped away from 0 and 1.

    Args:
        truth: 0 or 1, [N, C].
        least: Minimum share, so that an absent finding has some weight.
    """
    return torch.clamp(truth.float().mean(dim=0), least, 1.0 - least)
