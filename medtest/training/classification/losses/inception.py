"""Losses of the training of Inception-v3 on diabetic retinopathy (Xu et al., MedIA 2021; its published code)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

L1_SHARE = 1e-5
"""Weight of the L1 norm in the published training; the adversarial one has 0.01."""


def l1_norm(parameters: Iterable[Tensor]) -> Tensor:
    """Return the sum of the absolute values of all parameters, including biases and norms."""
    return torch.stack([parameter.abs().sum() for parameter in parameters]).sum()


def inception_loss(
    outputs: Any,
    targets: Tensor,
    parameters: Iterable[Tensor] = (),
    *,
    l1: float = L1_SHARE,
    auxiliary: float = 0.0,
) -> Tensor:
    """Return the loss of one step: cross-entropy of the main head, and a share of the parameters' L1 norm.

    Args:
        outputs: Logits [B, C], or the pair of main and auxiliary head in training.
        targets: Index of the true class, int64 [B].
        parameters: Parameters in the L1 norm; it is omitted if there are none.
        l1: Its weight.
        auxiliary: Weight of the auxiliary head's cross-entropy. The published training uses none; Szegedy et al.,
        "Going
            Deeper with Convolutions", CVPR 2015, section 5, use 0.3.
    """
    main, side = (outputs, None) if isinstance(outputs, Tensor) else outputs
    loss = functional.cross_entropy(main, targets)
    if side is not None and auxiliary > 0:
        loss = loss + auxiliary * functional.cross_entropy(side, targets)
    weights = list(parameters)
    return loss + l1 * l1_norm(weights) if weights and l1 > 0 else loss
