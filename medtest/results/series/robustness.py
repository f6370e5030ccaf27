"""(α,σ) of a curve and the related measures suggested in its paper, with intervals if images allow them.

For qualities Q_1 … Q_m over ascending scales σ_1 … σ_m (signs are reversed if lower is better):

- ``alpha``, ``sigma``: :func:`medtest.results.series.alpha_sigma.alpha_sigma`. α ≤ 0 means that the quality never
    decreases.
- ``mean_quality``: Σ Q_k / m. A constant output has α = 0 but is useless; this column shows it.
- ``area``: area under the curve by trapezoids, divided by σ_m - σ_1, i.e. the mean height between the outer scales.
- ``sum_of_falls``: Σ max(0, Q_k - Q_(k+1)).
- ``worst_loss``: max over j < k of Q_j - Q_k, the worst total loss from a scale to any larger one; below 0 if the
    quality rises throughout.

Intervals: 95 % percentile bootstrap over clusters of images, as everywhere (:mod:`medtest.results.cube`). With one case
per scale there is a permutation p instead: how often α is at least as large when the qualities are assigned to the
scales at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.results.cube.intervals import percentile_interval
from medtest.results.cube.resampling import Resampler, generator, group_numbers, sums_by_cluster
from medtest.results.series.alpha_sigma import NO_LOSS, TIE, steepest
from medtest.results.series.series import Floats, Series, SeriesSet

MEASURES: tuple[str, ...] = ("alpha", "sigma", "mean_quality", "area", "sum_of_falls", "worst_loss")
ROBUST_IS_HIGH: dict[str, bool] = {
    "alpha": False,
    "sigma": True,
    "mean_quality": True,
    "area": True,
    "sum_of_falls": False,
    "worst_loss": False,
}
"""For each measure, whether large values indicate robustness (for qualities, higher is better)."""

NO_RISE = "the error never rises over these scales"
DRAWS = 9_999
"""Number of random permutations if there are too many to enumerate."""
_ALL_PERMUTATIONS = 5_040
_EVEN = 0.05


@dataclass(frozen=True, kw_only=True)
class Robustness:
    """Robustness measures of one algorithm.

    Attributes:
        name: Name of the algorithm.
        alpha: Steepest loss per unit of scale.
        sigma: Scale at which that step begins.
        sigma_label: That scale as written in its source.
        step: Index of that step, from 0.
        mean_quality: Mean over scales.
        area: Normalised area under the curve.
        sum_of_falls: Sum of losses between neighbours.
        worst_loss: Worst total loss.
        intervals: Lower and upper end by measure; empty without images.
        sigma_share: Share of the bootstrap draws with this σ; None without images.
        p: Permutation p of α; None with images.
        note: Remark for the reader, such as that quality never decreases.
    """

    name: str
    alpha: float
    sigma: float
    sigma_label: str
    step: int
    mean_quality: float
    area: float
    sum_of_falls: float
    worst_loss: float
    intervals: dict[str, tuple[float, float]]
    sigma_share: float | None
    p: float | None
    note: str


def robustness_of(series: Series, *, lower_is_better: bool = False, name: str = "images") -> Robustness:
    """Return every measure of one curve.

    Args:
        series: Curve with at least two scales.
        lower_is_better: True if a rise is the loss.
        name: Seeds the bootstrap's random numbers; use the same for all algorithms, so that they share the draws.

    Raises:
        ValueError: There are fewer than two scales.
    """
    if series.scales.size < 2:
        raise ValueError(f"{series.name}: at least two scales are needed, got {series.scales.size}")
    values, steps = measures(series.scales, series.qualities[None], lower_is_better=lower_is_better)
    by_measure = {key: float(value[0]) for key, value in values.items()}
    step = int(steps[0])
    intervals, share = _intervals(series, by_measure["sigma"], lower_is_better=lower_is_better, name=name)
    return Robustness(
        name=series.name,
        **by_measure,
        sigma_label=series.labels[step],
        step=step,
        intervals=intervals,
        sigma_share=share,
        p=None if series.clustered else permutation_p(series.scales, series.qualities, lower_is_better=lower_is_better),
        note="" if by_measure["alpha"] > 0 else NO_RISE if lower_is_better else NO_LOSS,
    )


def measures(
    scales: Floats, curves: Floats, *, lower_is_better: bool = False
) -> tuple[dict[str, Floats], NDArray[np.int64]]:
    """Return every measure of many curves, and the index of the worst step of each.

    Args:
        scales: m ascending, distinct scales, m ≥ 2.
        curves: N × m.
        lower_is_better: True if a rise is the loss.
    """
    sign = -1.0 if lower_is_better else 1.0
    good = sign * np.asarray(curves, dtype=np.float64)
    alphas, steps = steepest(scales, good)
    widths = np.diff(scales)
    area = ((good[:, 1:] + good[:, :-1]) / 2 * widths).sum(1) / (scales[-1] - scales[0])
    best_so_far = np.maximum.accumulate(good, axis=1)[:, :-1]
    return (
        {
            "alpha": alphas + 0.0,  # no negative zero
            "sigma": scales[steps],
            "mean_quality": sign * good.mean(1),
            "area": sign * area,
            "sum_of_falls": np.maximum(-np.diff(good, axis=1), 0.0).sum(1),
            "worst_loss": (best_so_far - good[:, 1:]).max(1),
        },
        steps,
    )


def _intervals(
    curve: Series, sigma: float, *, lower_is_better: bool, name: str
) -> tuple[dict[str, tuple[float, float]], float | None]:
    if not curve.clustered or curve.images is None or curve.clusters is None:
        return {}, None
    drawn = resampled(curve.images, curve.clusters, name)
    values, _ = measures(curve.scales, drawn, lower_is_better=lower_is_better)
    intervals: dict[str, tuple[float, float]] = {}
    for key, draws in values.items():
        if key == "sigma":
            low, high = np.quantile(draws, (0.025, 0.975), method="nearest")
        else:
            low, high = (end for end in percentile_interval(draws))
        intervals[key] = (float(low), float(high))
    return intervals, float((values["sigma"] == sigma).mean())


def resampled(images: Floats, clusters: NDArray[np.int64], name: str) -> Floats:
    """Return mean curves of resampled clusters, draws × m, without draws that contain no image.

    Args:
        images: N × m.
        clusters: Cluster of each image.
        name: Seeds the random numbers.
    """
    numbers, count = group_numbers(clusters)
    drawn = Resampler(count, name).drawn(sums_by_cluster(images, numbers, count))
    nonempty = drawn[drawn[:, -1] > 0]
    return np.asarray(nonempty[:, :-1] / nonempty[:, -1:])


def permutation_p(scales: Floats, qualities: Floats, *, lower_is_better: bool = False) -> float:
    """Return the probability of an α at least this large when qualities are assigned to scales at random.

    Up to seven scales every permutation is enumerated, including the observed one; above, 9,999 are drawn and the
    observed one is added (B. Phipson and G. K. Smyth, 2010).
    """
    sign = -1.0 if lower_is_better else 1.0
    good = sign * np.asarray(qualities, dtype=np.float64)
    size = good.size
    if factorial(size) <= _ALL_PERMUTATIONS:
        dealt = np.array(list(permutations(good)))
    else:
        rng = generator("permutation", size)
        dealt = np.concatenate([good[None], rng.permuted(np.tile(good, (DRAWS, 1)), axis=1)])
    alphas, _ = steepest(scales, dealt)
    observed, _ = steepest(scales, good[None])
    slack = TIE * float(np.abs(alphas).max())
    return float((alphas >= observed[0] - slack).mean())


def irregular(scales: Floats) -> bool:
    """Return True if the steps between scales differ by more than 5 % of their mean, which makes α mostly noise."""
    steps = np.diff(scales)
    return bool(steps.size and np.ptp(steps) > _EVEN * steps.mean())


def robustness_table(curves: SeriesSet) -> pd.DataFrame:
    """Return one row for each algorithm, by descending α as in the paper's program, with intervals or p."""
    rows = []
    for robustness in ranked(
        [robustness_of(s, lower_is_better=curves.lower_is_better, name="images") for s in curves.series]
    ):
        row: dict[str, object] = {"algorithm": robustness.name}
        for key in MEASURES:
            row[key] = _round(getattr(robustness, key))
            low, high = robustness.intervals.get(key, (None, None))
            row[f"{key}_low"], row[f"{key}_high"] = _round(low), _round(high)
        rows.append(
            {
                **row,
                "sigma_share": _round(robustness.sigma_share),
                "permutation_p": _round(robustness.p),
                "note": robustness.note,
            }
        )
    return pd.DataFrame(rows)


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:z.9g}")


def ranked(results: Sequence[Robustness]) -> list[Robustness]:
    """Return algorithms by descending α; equal ones keep their order."""
    return sorted(results, key=lambda algorithm: -algorithm.alpha)


def agreement(results: Sequence[Robustness], *, lower_is_better: bool = False) -> pd.DataFrame:
    """Return Kendall's τ-b between the rankings by each measure, oriented so that high is robust.

    Args:
        results: Measures of three or more algorithms; fewer give an empty table, since two rankings of two are
            uninformative.
        lower_is_better: True if ``mean_quality`` and ``area`` are errors.
    """
    from scipy.stats import kendalltau

    if len(results) < 3:
        return pd.DataFrame(columns=["measure", *MEASURES])
    turned = {"mean_quality", "area"} if lower_is_better else set()
    values = {
        key: np.array([getattr(robustness, key) for robustness in results]) * (1 if high != (key in turned) else -1)
        for key, high in ROBUST_IS_HIGH.items()
    }
    rows = []
    for first in MEASURES:
        row: dict[str, object] = {"measure": first}
        for second in MEASURES:
            tau = float(kendalltau(values[first], values[second]).statistic)
            row[second] = None if np.isnan(tau) else round(tau, 4)
        rows.append(row)
    return pd.DataFrame(rows)
