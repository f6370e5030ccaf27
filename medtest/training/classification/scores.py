"""Scores of a classifier on held-out cases: accuracy and area under the ROC curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def accuracy(logits: Floats, truth: Floats, *, multi: bool) -> float:
    """Return the share of right answers: of cases, or of single decisions if several classes may apply.

    Args:
        logits: float B×C.
        truth: float B×C, 1 for classes that apply.
        multi: Whether several classes may apply; each is decided at probability 0.5.
    """
    if multi:
        return float(((logits > 0) == (truth > 0.5)).mean())
    return float((logits.argmax(axis=1) == truth.argmax(axis=1)).mean())


def areas(scores: Floats, truth: Floats) -> NDArray[np.float64]:
    """Return the area under the ROC curve of each class against the rest; NaN if all cases are of one kind.

    By ranks (Mann–Whitney), ties count one half.

    Args:
        scores: float B×C; higher means more likely.
        truth: float B×C.
    """
    from scipy.stats import rankdata

    result = np.full(truth.shape[1], np.nan)
    for number in range(truth.shape[1]):
        positive = truth[:, number] > 0.5
        yes, no = int(positive.sum()), int((~positive).sum())
        if yes and no:
            ranks = rankdata(scores[:, number])
            result[number] = (ranks[positive].sum() - yes * (yes + 1) / 2) / (yes * no)
    return result


def mean_area(logits: Floats, truth: Floats, *, multi: bool) -> float:
    """Return the mean area over classes with both kinds of cases; for two classes that of the second."""
    if multi:
        each = areas(logits, truth)
        return float(np.nanmean(each)) if np.isfinite(each).any() else 0.0
    shifted = logits - logits.max(axis=1, keepdims=True)
    shares = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    each = areas(shares, truth)[1:] if truth.shape[1] == 2 else areas(shares, truth)
    return float(np.nanmean(each)) if np.isfinite(each).any() else 0.0


def cross_entropy(logits: NDArray[np.float32], truth: NDArray[np.float32], *, multi: bool) -> float:
    """Return the mean cross-entropy of logits, float B×C, with truth of the same shape."""
    scores = np.asarray(logits, np.float64)
    if multi:
        return float((np.logaddexp(0, scores) - truth * scores).mean())
    top = scores.max(axis=1)
    whole = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return float((whole - (scores * truth).sum(axis=1)).mean())
