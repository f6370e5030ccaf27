"""Averaged weights, which are validated and kept in place of the last ones."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


class AveragedWeights:
    """A copy of a network whose weights and buffers follow the network's.

    Torch's ``AveragedModel`` looks every tensor up anew at each update, which takes longer than averaging them; here
    they are looked up once, so that nobody may put others in their place.

    Args:
        network: What is followed; the copy begins with its weights and buffers.
        decay: Of what the copy has, per update.
        ramp: The decay rises to that value over the first updates: k / (9 + k) in the k-th.

    Attributes:
        module: The copy.
        updates: How often it has followed.
    """

    def __init__(self, network: nn.Module, decay: float, *, ramp: bool) -> None:
        self.module = copy.deepcopy(network)
        self.updates = 0
        self._decay, self._ramp = decay, ramp
        kept, current = ([*one.parameters(), *one.buffers()] for one in (self.module, network))
        self._means: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._counts: list[tuple[Tensor, Tensor]] = []
        for old, new in zip(kept, current, strict=True):
            if old.is_floating_point():
                self._means[0].append(old.detach())
                self._means[1].append(new.detach())
            else:  # a count of batches is no mean
                self._counts.append((old, new))

    @torch.no_grad()
    def follow(self) -> None:
        """Move towards the network's weights of now."""
        self.updates += 1
        decay = min(self._decay, self.updates / (9 + self.updates)) if self._ramp else self._decay
        get_ema_multi_avg_fn(decay)(*self._means, self.updates)  # type: ignore[no-untyped-call]
        for old, new in self._counts:
            old.copy_(new)
