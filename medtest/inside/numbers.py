"""Comparison of features, saliency and attention: plain arithmetic on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask

Values = NDArray[Any]


def cosine(first: Values, second: Values) -> float | None:
    """Return the cosine of two arrays of equal shape, in [-1, 1]; None if either is zero everywhere."""
    first, second = (np.asarray(values, np.float64).ravel() for values in (first, second))
    norms = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.clip(first @ second / norms, -1.0, 1.0)) if norms > 0 else None


def relative_distance(first: Values, second: Values) -> float | None:
    """Return ‖second - first‖ / ‖first‖ (L2), 0 for equal arrays; None if the first is zero everywhere."""
    first, second = (np.asarray(values, np.float64).ravel() for values in (first, second))
    norm = float(np.linalg.norm(first))
    return float(np.linalg.norm(second - first)) / norm if norm > 0 else None


def rank_correlation(first: Values, second: Values) -> float | None:
    """Return Spearman's rank correlation of two arrays, ties by their mean rank; None if either is constant."""
    from scipy.stats import rankdata

    ranks = [rankdata(np.asarray(values).ravel()) for values in (first, second)]
    return cosine(*(values - values.mean() for values in ranks))


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
