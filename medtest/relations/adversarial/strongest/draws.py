"""Networks whose answers do not repeat: detection, seeding per case, and averages over draws.

An attack on a random network follows one draw and is judged by another. Such a network is attacked one case at a time,
each under its own seed, so that results do not depend on the batch; ``strongest`` averages gradients and scores over
several draws (expectation over transformation: A. Athalye et al., "Synthesizing robust adversarial examples", ICML
2018).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from medtest.core.probes import Probe

if TYPE_CHECKING:
    from torch import Tensor

_SAME = 1e-4
"""Relative difference of logits up to which two answers count as equal."""


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Seed the generators of torch, NumPy and Python within the block and restore them afterwards.

    Args:
        seed: At least 0.
        device: Device of the network, ``cpu`` or ``cuda:N``.
    """
    devices = [torch.device(device)] if device.startswith("cuda") else []
    numbers, words = np.random.get_state(), random.getstate()  # noqa: NPY002 - a network may use it
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed % 2**63)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(numbers)  # noqa: NPY002
            random.setstate(words)


def same_answers(first: Tensor, second: Tensor) -> bool:
    """Return True if two queries on the same images gave equal logits up to rounding."""
    return bool(((first - second).abs() <= _SAME * (1 + first.abs())).all())


class ProbeWith:
    """Probe that answers with other logits; see :class:`medtest.core.probes.Probe`.

    Args:
        probe: The underlying probe.
        logits: Function from images to logits.
    """

    def __init__(self, probe: Any, logits: Callable[[Tensor], Tensor]) -> None:
        self._probe, self.logits = probe, logits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._probe, name)


def drawn_logits(probe: Probe, draws: int) -> Callable[[Tensor], Tensor]:
    """Return a function from pixels to the logits of several draws, draws×B×…; plain logits for one draw."""
    if draws == 1:
        return probe.logits
    return lambda pixels: torch.stack([probe.logits(pixels) for _ in range(draws)])


def mean_loss(loss: Callable[[Tensor, Tensor], Tensor], draws: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a loss on the output of :func:`drawn_logits`: the mean loss over the draws."""
    if draws == 1:
        return loss
    return lambda logits, rows: torch.stack([loss(drawn, rows) for drawn in logits]).mean(dim=0)
