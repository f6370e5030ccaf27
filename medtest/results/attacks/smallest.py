"""Smallest perturbation that flips an answer, and its curve: ``tables/smallest_epsilon.csv``.

Computed for attacks with ``minimal: true``. Each ε is an upper bound: another attack may need less. An image that does
not flip within the bound is censored there. The share flipped up to ε is one minus the product over smaller ε of 1 -
flipped / at risk (E. L. Kaplan and P. Meier, 1958); the median is the smallest ε at which it reaches one half.
Intervals resample clusters; if fewer than ten clusters have flipped, or fewer than ten have not, they are Wilson
intervals with every cluster counted as one case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.results.attacks.settings import Setting
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Axes
from medtest.results.cube.intervals import FEW_CLUSTERS, percentile_interval, wilson_of_rate
from medtest.results.records.records_io import Records

Floats: TypeAlias = NDArray[np.float64]

COLUMNS = columns_in(__file__, "smallest_epsilon")
CURVE_COLUMNS = columns_in(__file__, "smallest_epsilon_curve")
SMALLEST = "smallest_epsilon"
MEASURE = "upper bound"
"""Meaning of each smallest ε."""
_DRAWS = 500


def median_of(epsilon: Floats, share: Floats) -> float:
    """Return the smallest ε at which half of the images flip; NaN if fewer do.

    Args:
        epsilon: float64 K, ascending: each ε at which some image flips.
        share: float64 K; share of images that flip up to each, in [0, 1].
    """
    reached = np.flatnonzero(share >= 0.5 - 1e-12)
    return float(epsilon[reached[0]]) if reached.size else float("nan")


def flipped_share(epsilon: Floats, flipped: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return each ε at which some image flips, ascending, and the share flipped up to it.

    Args:
        epsilon: float64 N; smallest ε that flips the image, or the bound within which none does.
        flipped: bool N.
    """
    return np.unique(epsilon[flipped]), drawn_shares(epsilon, flipped, np.ones((1, len(epsilon))))[0]


def drawn_shares(epsilon: Floats, flipped: NDArray[np.bool_], weights: Floats) -> Floats:
    """Return weighted shares, float64 R×K, at the ε of :func:`flipped_share`.

    Args:
        epsilon: As in :func:`flipped_share`.
        flipped: As in :func:`flipped_share`.
        weights: float64 R×N; weight of each image in each replicate.
    """
    grid = np.unique(epsilon[flipped])
    events = (epsilon[None, :] == grid[:, None]) & flipped  # K×N
    # An image censored at the ε at which another flips was still at risk there.
    at_risk = weights @ (epsilon[None, :] >= grid[:, None]).T
    with np.errstate(invalid="ignore", divide="ignore"):
        hazard = np.where(at_risk > 0, (weights @ events.T) / at_risk, 0.0)
    return np.asarray(1.0 - np.cumprod(1.0 - hazard, axis=1), np.float64)


def smallest_tables(records: Records, place: Axes, settings: Sequence[Setting]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return medians, with :data:`COLUMNS`, and curves, with :data:`CURVE_COLUMNS`; ε in levels of 255.

    Args:
        records: Records of one system.
        place: Axes of the records.
        settings: Settings from :func:`medtest.results.attacks.settings.settings_of`.
    """
    medians: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    value = records.floats(SMALLEST)
    answered = np.asarray(records.followups["verdict"].isin(["PASS", "FAIL"]), dtype=bool)
    for setting in settings:
        answered_rows = setting.rows[answered[setting.rows] | ~np.isnan(value[setting.rows])]
        if not (bool(setting.params.get("minimal")) or bool((~np.isnan(value[answered_rows])).any())):
            continue
        for name, rows in _by_dataset(place, answered_rows):
            median, curve = _one(value[rows], setting.epsilon, place, rows)
            head = {"dataset": name, "relation": setting.relation, "severity": str(setting.severity)}
            medians.append({**head, "crafted_on": setting.crafted_on, **median})
            curves += [{**head, **point} for point in curve]
    return pd.DataFrame(medians, columns=list(COLUMNS)), pd.DataFrame(curves, columns=list(CURVE_COLUMNS))


def _by_dataset(place: Axes, rows: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    for number, name in enumerate(place.datasets):
        inside = rows[place.dataset[rows] == number]
        if inside.size:
            yield name, inside
    if rows.size:
        yield ALL, rows


def _one(
    value: Floats, bound: float, place: Axes, rows: NDArray[np.int64]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    flipped = ~np.isnan(value)
    epsilons, shares, low, high, clusters = flip_curve(value, np.full(len(value), bound), place, rows)
    row: dict[str, Any] = {
        "cases": len(rows),
        "clusters": clusters,
        "flipped": int(flipped.sum()),
        "bound": bound,
        "measure": MEASURE,
        "median": round(median_of(epsilons, shares), 6),
        "median_low": float("nan"),
        "median_high": float("nan"),
    }
    if not epsilons.size:
        return row, []
    if clusters > 1:
        # The ends are where the band crosses one half, as in Brookmeyer and Crowley.
        row["median_low"] = median_of(epsilons, high)
        row["median_high"] = median_of(epsilons, low)
    points = [
        {
            "epsilon": round(float(at), 6),
            "flipped_share": round(float(share), 6),
            "ci_low": round(float(a), 6),
            "ci_high": round(float(b), 6),
        }
        for at, share, a, b in zip(epsilons, shares, low, high, strict=True)
    ]
    return row, points


def flip_curve(
    value: Floats, bound: Floats, place: Axes, rows: NDArray[np.int64]
) -> tuple[Floats, Floats, Floats, Floats, int]:
    """Return values, the share flipped up to each, the ends of its 95 % band, and the number of clusters.

    Args:
        value: float64 N; smallest value at which a case flips, NaN if it does not.
        bound: float64 N; greatest value that was tried, where a case that does not flip is censored.
        place: Axes of the records.
        rows: int64 N; row of each case among the records.
    """
    flipped = ~np.isnan(value)
    epsilon = np.where(flipped, value, bound)
    grid, shares = flipped_share(epsilon, flipped)
    keys = place.dataset[rows] * (int(place.cluster.max(initial=0)) + 1) + place.cluster[rows]
    clusters = len(np.unique(keys))
    if not grid.size:
        return grid, shares, np.empty(0), np.empty(0), clusters
    return grid, shares, *_band(grid, shares, epsilon, flipped, place, rows, keys), clusters


def _band(
    grid: Floats,
    shares: Floats,
    epsilon: Floats,
    flipped: NDArray[np.bool_],
    place: Axes,
    rows: NDArray[np.int64],
    keys: NDArray[np.int64],
) -> tuple[Floats, Floats]:
    """Return the ends of the interval at every point of the curve; NaN for a single cluster."""
    clusters = len(np.unique(keys))
    empty = np.full(len(shares), np.nan)
    if clusters < 2:
        return empty, empty
    weights = np.zeros((_DRAWS, len(rows)))
    for number, resampler in enumerate(place.resamplers):
        inside = place.dataset[rows] == number
        if inside.any():
            weights[:, inside] = resampler.weights(_DRAWS)[:, place.cluster[rows[inside]]]
    low, high = percentile_interval(drawn_shares(epsilon, flipped, weights))
    for number, (at, share) in enumerate(zip(grid, shares, strict=True)):
        flipped_clusters = len(np.unique(keys[flipped & (epsilon <= at)]))
        unflipped_clusters = len(np.unique(keys[~(flipped & (epsilon <= at))]))
        if flipped_clusters < FEW_CLUSTERS or unflipped_clusters < FEW_CLUSTERS:
            low[number], high[number] = wilson_of_rate(float(share), clusters)
    return low, high
