"""Averaged weights, which are validated and kept in place of the last ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


def averaged(network: nn.Module, decay: float, *, ramp: bool) -> AveragedModel:
    """Return an averaged copy of a network, which begins with the network's weights and buffers.

    Args:
        network: What it follows.
        decay: Of what it has, per update.
        ramp: The decay rises to that value over the first updates: k / (9 + k) in the k-th.
    """

    @torch.no_grad()
    def follow(kept: Any, current: Any, updates: Tensor | int) -> None:
        count = int(updates)
        share = 1.0 - (min(decay, count / (9 + count)) if ramp else decay)
        for old, new in zip(kept, current, strict=True):
            if old.is_floating_point():
                old.lerp_(new, share)
            else:  # a count of batches is no mean
                old.copy_(new)

    model = AveragedModel(network, multi_avg_fn=follow, use_buffers=True)
    model.n_averaged.fill_(1)  # torch's first update would copy the network again
    return model
