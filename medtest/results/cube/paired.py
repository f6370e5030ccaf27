"""Tests of paired cases: McNemar's exact test, its extension to clusters, and correction for multiple tests.

With one pair per cluster, b pairs have a right source and a wrong follow-up and c the reverse; under the hypothesis
that source and follow-up are exchangeable, b is binomial with b + c draws and probability 1/2 (Q. McNemar,
Psychometrika 1947; the two-sided p doubles the smaller tail). With several pairs per cluster (severities, frames,
images of a patient) the pairs are not independent: whole clusters are exchanged, so that the net number b - c of each
gets a random sign (a permutation test; P. Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, 2005,
section 3.7). With one pair per cluster both tests agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST = 1e-12
"""Smallest p reported; smaller values are rounding errors of the transform."""


def exact(b: int, c: int) -> float:
    """Return the two-sided exact p of McNemar's test.

    Args:
        b: Number of pairs that changed one way.
        c: Number of pairs that changed the other way.
    """
    from scipy.stats import binom

    if b + c == 0:
        return 1.0
    return float(min(1.0, 2.0 * binom.cdf(min(b, c), b + c, 0.5)))


def clustered(net: ArrayLike) -> float:
    """Return the two-sided exact p of the permutation test that exchanges whole clusters.

    Args:
        net: int; b - c of each cluster. If all are -1, 0 or 1, the p is that of :func:`exact`.
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
    """Return the probabilities of Σ ±size from -Σ size to Σ size, by inverting their characteristic function."""
    total = int(sizes.sum())
    length = 2 * total + 1
    angle = 2 * np.pi * np.arange(length) / length
    product = np.ones(length)
    for size, number in zip(*np.unique(sizes, return_counts=True), strict=True):
        product *= np.cos(size * angle) ** number
    around = np.fft.ifft(product).real  # probability of a sum s at s modulo length
    return np.maximum(np.roll(around, total), 0.0)


def holm(values: Sequence[float]) -> list[float]:
    """Return p values corrected for multiple tests (S. Holm, 1979), in their order.

    ``multipletests`` of statsmodels gives the same, but it collects garbage at each call, which adds 50 ms to every
    table.
    """
    order = np.argsort(values, kind="stable")
    corrected = np.zeros(len(values))
    steps = np.asarray(values, dtype=np.float64)[order] * np.arange(len(values), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in corrected]
