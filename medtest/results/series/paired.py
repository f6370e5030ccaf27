"""Are two algorithms' (α) unlike one another? A paired permutation test over images.

Both algorithms saw the same images. If it made no matter which is which, exchanging their curves on some images would
give differences of α as large as the observed one: the p value is how often it does (two-sided, P. Good, Permutation,
Parametric and Bootstrap Tests of Hypotheses, 2005, section 3.7). Clusters (patients, films) are exchanged whole. Holm's
correction makes the p values of all pairs hold together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from medtest.results.cube.paired import holm
from medtest.results.cube.resampling import generator, group_numbers, sums_by_cluster
from medtest.results.series.alpha_sigma import TIE, steepest
from medtest.results.series.series import Floats, Series, SeriesSet

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 9_999
_ALL_SIGNS = 13
"""Up to this many clusters every exchange is counted (8,192)."""
_AT_A_TIME = 4_000_000
"""Signs in memory."""

COLUMNS = ("first", "second", "images", "clusters", "alpha_difference", "mean_difference", "p", "p_holm", "p_mean")


def paired_table(found: SeriesSet) -> pd.DataFrame:
    """Return every pair of algorithms with images in common: differences of α and of mean quality, and their p."""
    import pandas as pd

    rows: list[dict[str, object]] = []
    for first, second in combinations(found.series, 2):
        if not (first.clustered and second.clustered) or first.seeds != second.seeds:
            continue
        if first.images is None or second.images is None or first.images.shape != second.images.shape:
            continue
        if not np.array_equal(first.scales, second.scales):
            continue
        rows.append(_pair(first, second, lower_is_better=found.lower_is_better))
    corrected = holm([float(str(row["p"])) for row in rows])
    for row, value in zip(rows, corrected, strict=True):
        row["p_holm"] = value
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _pair(first: Series, second: Series, *, lower_is_better: bool) -> dict[str, object]:
    if first.images is None or second.images is None or first.clusters is None:
        raise ValueError("a pair without images cannot be tested")
    sign = -1.0 if lower_is_better else 1.0
    numbers, count = group_numbers(first.clusters)
    both = [sign * one.images for one in (first, second) if one.images is not None]
    halves = [sums_by_cluster(images, numbers, count)[:, :-1] for images in both]
    middle, half = (halves[0] + halves[1]) / 2, (halves[0] - halves[1]) / 2
    images = len(first.images)
    swapped = np.concatenate([signs @ half for signs in _signs(count)])
    one, other = (middle.sum(0) + swapped) / images, (middle.sum(0) - swapped) / images
    alphas = steepest(first.scales, one)[0] - steepest(first.scales, other)[0]
    means = (one - other).mean(1)
    return {
        "first": first.name,
        "second": second.name,
        "images": images,
        "clusters": count,
        "alpha_difference": float(f"{alphas[0]:.6g}"),
        "mean_difference": float(f"{sign * means[0]:.6g}"),
        "p": _p(alphas),
        "p_mean": _p(means),
    }


def _signs(count: int) -> Iterator[Floats]:
    """Yield exchanges of clusters, some at a time, the observed order first: all of them, or as many as are drawn."""
    if count <= _ALL_SIGNS:
        bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        yield np.asarray(1.0 - 2.0 * bits, np.float64)
        return
    rng = generator("paired", count)
    yield np.ones((1, count))
    step = max(1, _AT_A_TIME // count)  # the draws are the same however many are made at a time
    for start in range(0, DRAWS, step):
        yield np.asarray(1.0 - 2.0 * rng.integers(2, size=(min(step, DRAWS - start), count)), np.float64)


def _p(values: Floats) -> float:
    slack = TIE * float(np.abs(values).max())
    return float((np.abs(values) >= abs(values[0]) - slack).mean())
