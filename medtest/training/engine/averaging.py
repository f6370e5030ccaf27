"""Averaged weights, which are validated and stored in place of the last ones."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


class AveragedWeights:
    """Copy of a network whose weights and buffers follow the network's.

    Torch's ``AveragedModel`` looks up every tensor again at each update, which takes longer than averaging them; here
    they
    are looked up once, so they must not be replaced.

    Args:
        network: The followed network; the copy starts with its weights and buffers.
        decay: Weight of the copy's previous values per update.
        ramp: Whether the decay rises to that value over the first updates: k / (9 + k) in the k-th.

    Attributes:
        module: The copy.
        updates: Number of updates.
    """

    def __init__(self, network: nn.Module, decay: float, *, ramp: bool) -> None:
        self.module = copy.deepcopy(network)
        self.updates = 0
        self._decay, self._ramp = decay, ramp
        averaged, current = ([*module.parameters(), *module.buffers()] for module in (self.module, network))
        self._means: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._counts: list[tuple[Tensor, Tensor]] = []
        for old, new in zip(averaged, current, strict=True):
            if old.is_floating_point():
                self._means[0].append(old.detach())
                self._means[1].append(new.detach())
            else:  # a batch counter is not averaged
                self._counts.append((old, new))

    @torch.no_grad()
    def follow(self) -> None:
        """Move towards the network's current weights."""
        self.updates += 1
        decay = min(self._decay, self.updates / (9 + self.updates)) if self._ramp else self._decay
        get_ema_multi_avg_fn(decay)(*self._means, self.updates)  # type: ignore[no-untyped-call]
        for old, new in self._counts:
            old.copy_(new)
