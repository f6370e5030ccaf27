"""Scores of a network on pairs: Dice and IoU per image, and bootstrap intervals of their means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import torch
from medtest.systems.checkpoints.inputs import IMAGENET, InputKind
from medtest.training.segmentation.data import Pairs

if TYPE_CHECKING:
    from torch import Tensor

Forward: TypeAlias = "Callable[[Tensor, Tensor], tuple[Tensor, float | Tensor]]"
"""Maps normalised images, float32 [B, 3, S, S], and truth, float32 [B, 1, S, S], to logits and loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Mean with its confidence interval.

    Attributes:
        mean: The mean.
        low: Lower end.
        high: Upper end.
        count: Number of values.
    """

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f}–{self.high:.3f}, n={self.count})"


def dice_and_iou(answer: NDArray[np.bool_], truth: NDArray[np.bool_]) -> tuple[float, float]:
    """Return Dice and IoU of two masks; 1 when both are empty, 0 when one is."""
    both = int(np.count_nonzero(answer & truth))
    sizes = int(np.count_nonzero(answer)) + int(np.count_nonzero(truth))
    if sizes == 0:
        return 1.0, 1.0
    return 2 * both / sizes, both / (sizes - both)


def bootstrap(values: NDArray[np.float64], *, seed: int = 0, draws: int = 10_000) -> Interval:
    """Return the mean with its 95 % percentile bootstrap interval over images."""
    rng = np.random.Generator(np.random.PCG64(seed))
    picks = rng.integers(len(values), size=(draws, len(values)))
    low, high = np.quantile(values[picks].mean(axis=1), [0.025, 0.975])
    return Interval(mean=float(values.mean()), low=float(low), high=float(high), count=len(values))


def dice_of(
    forward: Forward, pairs: Pairs, *, kind: InputKind = IMAGENET, threshold: float = 0.5, batch: int = 8
) -> tuple[NDArray[np.float64], float]:
    """Return each pair's Dice at the pairs' own size, and the mean loss over all pairs.

    Args:
        forward: Maps a batch to the logits [B, 1, S, S] of its masks and to its loss.
        pairs: Images and masks at the network's input size.
        kind: Input format of the network.
        threshold: Probability above which a pixel is lesion.
        batch: Batch size.
    """
    scores: list[float] = []
    losses: list[float] = []
    for start in range(0, len(pairs), batch):
        images = torch.from_numpy(kind.tensor(np.asarray(pairs.images[start : start + batch])))
        masks = np.asarray(pairs.masks[start : start + batch]) > 127
        with torch.inference_mode():
            logits, loss = forward(images, torch.from_numpy(masks.astype(np.float32))[:, None])
            probability = torch.sigmoid(logits)[:, 0].cpu().numpy()
        losses += [float(loss)] * len(masks)
        scores += [dice_and_iou(share > threshold, mask)[0] for share, mask in zip(probability, masks, strict=True)]
    return np.array(scores), float(np.mean(losses))
