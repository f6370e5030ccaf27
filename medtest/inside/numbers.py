"""Comparison of features, saliency and attention: plain arithmetic on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask

Values = NDArray[Any]


def cosine(one: Values, other: Values) -> float | None:
    """Return the cosine of two arrays of equal shape, in [-1, 1]; None if either is zero everywhere."""
    first, second = (np.asarray(values, np.float64).ravel() for values in (one, other))
    norms = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.clip(first @ second / norms, -1.0, 1.0)) if norms > 0 else None


def relative_distance(one: Values, other: Values) -> float | None:
    """Return ‖other - one‖ / ‖one‖ (L2), 0 for equal arrays; None if the first is zero everywhere."""
    first, second = (np.asarray(values, np.float64).ravel() for values in (one, other))
    norm = float(np.linalg.norm(first))
    return float(np.linalg.norm(second - first)) / norm if norm > 0 else None


def rank_correlation(one: Values, other: Values) -> float | None:
    """Return Spearman's rank correlation of two arrays, ties by their mean rank; None if either is constant."""
    from scipy.stats import rankdata

    ranks: list[Values] = [rankdata(np.asarray(each).ravel()) for each in (one, other)]
    first, second = (np.asarray(each - each.mean(), np.float64) for each in ranks)
    norms = float(np.sqrt((first @ first) * (second @ second)))
    return float(np.clip(first @ second / norms, -1.0, 1.0)) if norms > 0 else None


def share_inside(values: Values, mask: Mask | None) -> float | None:
    """Return the share of a non-negative map that is inside a mask, in [0, 1]; None if either is missing or empty.

    Args:
        values: h×w.
        mask: bool H×W of any size; each cell of the map is weighted by the share of it that the mask covers.
    """
    if mask is None or not mask.any():
        return None
    import cv2

    rows, columns = values.shape
    covered: Values = mask.astype(np.float64)
    if mask.shape != values.shape:
        covered = cv2.resize(covered, (columns, rows), interpolation=cv2.INTER_AREA)
    whole = float(np.asarray(values, np.float64).sum())
    return float((values * covered).sum()) / whole if whole > 0 else None
