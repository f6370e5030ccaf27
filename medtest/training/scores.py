"""How well a network does on pairs: Dice and IoU per image, and bootstrap intervals of their means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.systems.checkpoints.inputs import IMAGENET, InputKind
from medtest.training.data import Pairs

Answer = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean with its interval.

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
        return f"{self.mean:.3f} ({self.low:.3f}–{self.high:.3f}, n={self.count})"  # noqa: RUF001


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


def dice_of(answer: Answer, pairs: Pairs, *, batch: int = 8, kind: InputKind = IMAGENET) -> NDArray[np.float64]:
    """Return each pair's Dice at the pairs' own size.

    Args:
        answer: Maps what the network takes, float32 B×3×S×S, to probabilities float32 B×S×S.
        pairs: Images and masks at the size the network takes.
        batch: Images asked at once.
        kind: How the network wants its pixels.
    """
    scores: list[float] = []
    for start in range(0, len(pairs), batch):
        given = answer(kind.tensor(pairs.images[start : start + batch]))
        for probability, mask in zip(given, pairs.masks[start : start + batch], strict=True):
            scores.append(dice_and_iou(probability > 0.5, mask > 127)[0])
    return np.array(scores)
