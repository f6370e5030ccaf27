"""Tests of paired cases: McNemar's exact test, also for several pairs a cluster, and the correction for many tests.

With one pair a cluster: b sources right and follow-ups wrong, c the other way round; under the hypothesis that it makes
no matter which of the two is the follow-up, b is binomial with b + c draws and 1/2 (Q. McNemar, Psychometrika 1947; the
two-sided p doubles the smaller tail). With several pairs a cluster (severities, frames, images of a patient) the pairs
are not independent: clusters are exchanged whole, so that the net number b - c of each gets a random sign (a
permutation test; P. Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, 2005, section 3.7). The first is
the second with one pair a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST = 1e-12
"""Smaller p than this are rounding errors of the transform, and are given as this."""


def exact(b: int, c: int) -> float:
    """Return the two-sided exact p of McNemar's test.

    Args:
        b: Pairs that changed one way.
        c: Pairs that changed the other way.
    """
    from scipy.stats import binom

    if b + c == 0:
        return 1.0
    return float(min(1.0, 2.0 * binom.cdf(min(b, c), b + c, 0.5)))


def clustered(net: ArrayLike) -> float:
    """Return the two-sided exact p of clusters exchanged whole.

    Args:
        net: int; b - c of each cluster. With values of -1, 0 and 1 alone the p is :func:`exact`'s.
    """
    values = np.asarray(net, dtype=np.int64)
    sizes = np.abs(values[values != 0])
    if sizes.size == 0:
        return 1.0
    observed = abs(int(values.sum()))
    if sizes.max() == 1:
        b = int((values > 0).sum())
        return exact(b, int(sizes.size) - b)
    chances = _sums(sizes)
    middle = len(chances) // 2
    distance = np.abs(np.arange(len(chances)) - middle)
    return float(np.clip(chances[distance >= observed].sum(), SMALLEST, 1.0))


def _sums(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the chances of Σ ±size from -Σ size to Σ size, by the inverse of their characteristic function."""
    total = int(sizes.sum())
    length = 2 * total + 1
    angle = 2 * np.pi * np.arange(length) / length
    product = np.ones(length)
    for size, number in zip(*np.unique(sizes, return_counts=True), strict=True):
        product *= np.cos(size * angle) ** number
    around = np.fft.ifft(product).real  # chance of a sum s at s modulo length
    return np.maximum(np.roll(around, total), 0.0)


def holm(values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (S. Holm, 1979), in their order.

    ``multipletests`` of statsmodels gives the same; it collects garbage at each call, which takes 50 ms of every table.
    """
    order = np.argsort(values, kind="stable")
    corrected = np.zeros(len(values))
    steps = np.asarray(values, dtype=np.float64)[order] * np.arange(len(values), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in corrected]
