"""Paired permutation test over images of the difference in α between two algorithms.

Both algorithms saw the same images. If they were exchangeable, swapping their curves on some images would give
differences of α as large as the observed one; the p value is how often it does (two-sided, P. Good, Permutation,
Parametric and Bootstrap Tests of Hypotheses, 2005, section 3.7). Whole clusters (patients, films) are exchanged. The p
values of all pairs are corrected by Holm's method.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from medtest.core.deferred import pd
from medtest.results.cube.paired import holm
from medtest.results.cube.resampling import generator, group_numbers, sums_by_cluster
from medtest.results.series.alpha_sigma import TIE, steepest
from medtest.results.series.series import Floats, Series, SeriesSet

DRAWS = 9_999
_ALL_SIGNS = 13
"""Largest number of clusters for which every exchange is enumerated (8,192)."""
_AT_A_TIME = 4_000_000
"""Number of signs in memory."""

COLUMNS = ("first", "second", "images", "clusters", "alpha_difference", "mean_difference", "p", "p_holm", "p_mean")


def paired_table(curves: SeriesSet) -> pd.DataFrame:
    """Return every pair of algorithms with common images: differences of α and of mean quality, with p values."""
    rows: list[dict[str, object]] = []
    for first, second in combinations(curves.series, 2):
        if not (first.clustered and second.clustered) or first.seeds != second.seeds:
            continue
        if first.images is None or second.images is None or first.images.shape != second.images.shape:
            continue
        if not np.array_equal(first.scales, second.scales):
            continue
        rows.append(_pair(first, second, lower_is_better=curves.lower_is_better))
    corrected = holm([float(str(row["p"])) for row in rows])
    for row, value in zip(rows, corrected, strict=True):
        row["p_holm"] = value
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _pair(first: Series, second: Series, *, lower_is_better: bool) -> dict[str, object]:
    if first.images is None or second.images is None or first.clusters is None:
        raise ValueError("a pair without images cannot be tested")
    sign = -1.0 if lower_is_better else 1.0
    numbers, count = group_numbers(first.clusters)
    qualities = [sign * curve.images for curve in (first, second) if curve.images is not None]
    halves = [sums_by_cluster(images, numbers, count)[:, :-1] for images in qualities]
    middle, half = (halves[0] + halves[1]) / 2, (halves[0] - halves[1]) / 2
    images = len(first.images)
    swapped = np.concatenate([signs @ half for signs in _signs(count)])
    first_means, second_means = (middle.sum(0) + swapped) / images, (middle.sum(0) - swapped) / images
    alphas = steepest(first.scales, first_means)[0] - steepest(first.scales, second_means)[0]
    means = (first_means - second_means).mean(1)
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
    """Yield batches of cluster exchanges, the observed order first: all of them, or a random sample."""
    if count <= _ALL_SIGNS:
        bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        yield np.asarray(1.0 - 2.0 * bits, np.float64)
        return
    rng = generator("paired", count)
    yield np.ones((1, count))
    step = max(1, _AT_A_TIME // count)  # the draws do not depend on the batch size
    for start in range(0, DRAWS, step):
        yield np.asarray(1.0 - 2.0 * rng.integers(2, size=(min(step, DRAWS - start), count)), np.float64)


def _p(values: Floats) -> float:
    slack = TIE * float(np.abs(values).max())
    return float((np.abs(values) >= abs(values[0]) - slack).mean())
