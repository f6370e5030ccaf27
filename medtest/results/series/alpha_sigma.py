"""(α,σ)-robustness of each system over each relation's scales: ``tables/alpha_sigma.csv``.

Definition 1 and equation 6 of Vacavant et al., "(α,σ)-robustness": over the scales σ_1 < … < σ_m of a disturbance with
qualities Q_1 … Q_m, α is the steepest loss per unit of scale, ``max_k (Q_k - Q_{k+1}) / (σ_{k+1} - σ_k)``, and σ the
scale σ_k at which that step begins. The paper prints the difference of qualities with the opposite sign but means a
decrease, as its published values show. Equal steps (within floating-point error) resolve to the larger scale. α ≤ 0
means that quality never decreases, and is reported as is.

Scales are the physical ``scale`` of the follow-ups, not their severity. The curve is the mean over the seeds that were
scored at every scale, so that no step is caused by seeds that dropped out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Axes, axes
from medtest.results.cube.intervals import percentile_interval
from medtest.results.cube.resampling import sums_by_cluster
from medtest.results.records.records_io import Records

Floats: TypeAlias = NDArray[np.float64]

TIE = 1e-9
"""Steps that differ by less than this fraction of the curve's range per unit of scale are equal."""

COLUMNS = columns_in(__file__, "alpha_sigma")
NO_LOSS = "quality never falls over these scales"
TOO_FEW_SCALES = "fewer than two distinct scales"
TOO_FEW_SEEDS = "no seed was scored at all scales"


@dataclass(frozen=True, kw_only=True)
class AlphaSigma:
    """(α,σ) of one curve.

    Attributes:
        alpha: Steepest loss of quality per unit of scale; at or below 0 if quality never decreases.
        sigma: Scale at which that step begins.
        step: Index of that step, from 0.
    """

    alpha: float
    sigma: float
    step: int


def alpha_sigma(scales: ArrayLike, qualities: ArrayLike) -> AlphaSigma:
    """Return (α,σ) of one quality curve.

    Args:
        scales: m distinct scales in any order, m ≥ 2.
        qualities: Quality at each scale, higher is better.

    Raises:
        ValueError: Fewer than two scales, scales that are not distinct, or a number that is not finite.
    """
    sigma = np.asarray(scales, dtype=np.float64)
    quality = np.asarray(qualities, dtype=np.float64)
    if sigma.ndim != 1 or sigma.shape != quality.shape or sigma.size < 2:
        raise ValueError(f"expected two or more scales with one quality each, got {sigma.shape} and {quality.shape}")
    if not (np.isfinite(sigma).all() and np.isfinite(quality).all()):
        raise ValueError("scales and qualities must be finite numbers")
    order = np.argsort(sigma)
    sigma, quality = sigma[order], quality[order]
    if (np.diff(sigma) <= 0).any():
        raise ValueError("scales must be distinct")
    alphas, steps = steepest(sigma, quality[None])
    return AlphaSigma(alpha=float(alphas[0]), sigma=float(sigma[steps[0]]), step=int(steps[0]))


def steepest(sigma: Floats, curves: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return α and the step's index for many curves (N×m) over the same ascending scales."""
    slopes = -np.diff(curves, axis=1) / np.diff(sigma)
    alphas = slopes.max(axis=1)
    slack = TIE * np.abs(slopes).max(axis=1)
    tied = slopes >= (alphas - slack)[:, None]
    steps = slopes.shape[1] - 1 - np.argmax(tied[:, ::-1], axis=1)
    return alphas, steps


def alpha_sigma_table(
    records: Records,
    scores: Sequence[str],
    against: Sequence[str],
    place: Axes | None = None,
    *,
    include_source: bool = False,
) -> pd.DataFrame:
    """Return (α,σ) for every data set (and all together), relation, score and reference, with :data:`COLUMNS`.

    ``unchanged`` and relations in published mode (whose scales differ between seeds) are excluded; measured properties
    are in :func:`medtest.results.series.series_records.measured_rows`.

    Args:
        records: Records of one system.
        scores: Score columns.
        against: ``truth`` and ``source``.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
        include_source: If True, the source's quality, at scale 0, is the first point of the curves.
    """
    curves: list[tuple[dict[str, object], _Curves]] = []
    if records.followups.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    cells = axes(records) if place is None else place
    leveled = np.array([level > 0 for level in cells.severities], dtype=bool)[cells.severity]
    scale = records.floats("scale")
    follows: dict[int, _Follows] = {}
    rows_of = [np.flatnonzero((cells.relation == number) & leveled) for number in range(len(cells.relations))]
    for reference in against:
        for score in scores:
            scores_before, scores_after = records.compared(score, reference)
            if np.isnan(scores_after).all() or np.isnan(scores_before).all():
                continue
            for number, relation in enumerate(cells.relations):
                rows_here = rows_of[number]
                if relation == UNCHANGED or rows_here.size == 0:
                    continue
                head: dict[str, object] = {
                    "relation": relation,
                    "group": cells.groups[number],
                    "score": score,
                    "against": reference,
                }
                if number not in follows:
                    follows[number] = _Follows(cells, rows_here, cells.severity, scale)
                curves.append(
                    (head, _Curves(follows[number], scores_after, scores_before, include_source=include_source))
                )
    _draw(cells, [curve for _, curve in curves])
    rows = [{**head, **row} for head, curve in curves for row in curve.rows()]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _draw(place: Axes, curves: Sequence[_Curves]) -> None:
    """Resample all curves of each data set together, so that draws are made and read once."""
    for number, resampler in enumerate(place.resamplers):
        selected = [curve for curve in curves if curve.draws(number)]
        for curve, drawn in zip(
            selected, resampler.drawn_of_each([curve.sums(number) for curve in selected]), strict=True
        ):
            curve.drawn[number] = drawn


def _known_median(scales: Floats) -> float:
    """Return the median scale of a severity, ignoring NaN; NaN if all are."""
    valid = scales[~np.isnan(scales)]
    return float(np.median(valid)) if valid.size else float("nan")


class _Follows:
    """Positions of one relation's follow-ups on its curves, independent of the score.

    Args:
        place: Axes of all follow-ups.
        rows: Follow-ups of the relation.
        severity: Severity of every follow-up.
        scale: Scale of every follow-up.
    """

    def __init__(self, place: Axes, rows: NDArray[np.int64], severity: NDArray[np.int64], scale: Floats) -> None:
        self.place, self.rows = place, rows
        severities = severity[rows]
        levels = np.unique(severities)
        scales = np.array([_known_median(scale[rows][severities == level]) for level in levels])
        order = np.argsort(scales, kind="stable")
        self.scales = scales[order]
        self.position = np.argmax(severities[:, None] == levels[order], axis=1)
        seeds, self.numbers = np.unique(place.seed[rows], return_inverse=True)
        self.shape = (seeds.size, levels.size)
        self.first = np.zeros(seeds.size, np.int64)
        self.first[self.numbers[::-1]] = rows[::-1]
        self.present: list[int] = np.unique(place.dataset[rows]).tolist()


class _Curves:
    """Curves of one relation and one score, by seed.

    Args:
        follows: Follow-ups of the relation.
        after: Quality of every follow-up.
        before: Quality of its source.
        include_source: If True, curves start with the source, at scale 0.
    """

    def __init__(self, follows: _Follows, after: Floats, before: Floats, *, include_source: bool = False) -> None:
        place, first = follows.place, follows.first
        self._place, self._scales, self._present = place, follows.scales, follows.present
        quality = after[follows.rows]
        scored = ~np.isnan(quality)
        sums, counts = np.zeros(follows.shape), np.zeros(follows.shape)
        at = (follows.numbers[scored], follows.position[scored])
        np.add.at(sums, at, quality[scored])
        np.add.at(counts, at, 1.0)
        source = before[first]
        complete = (counts > 0).all(1) & ~np.isnan(source)
        self._curves = sums[complete] / counts[complete]
        self._sources = source[complete]
        if include_source:
            self._scales = np.concatenate([[0.0], self._scales])
            self._curves = np.concatenate([self._sources[:, None], self._curves], axis=1)
        self._dataset = place.dataset[first][complete]
        self._cluster = place.cluster[first][complete]
        self.drawn: dict[int, Floats] = {}
        """For each data set replicates × (scales + 1): sums of resampled clusters' curves, and numbers of seeds."""

    def rows(self) -> list[dict[str, object]]:
        """Return one row for each data set and one for all."""
        rows = [{"dataset": self._place.datasets[number], **self._one([number])} for number in self._present]
        together = self._one(self._present) if len(self._present) != 1 else rows[0]
        return [*rows, {**together, "dataset": ALL}]

    def _one(self, datasets: list[int]) -> dict[str, object]:
        scales = self._scales
        scale_text = " ".join(f"{value:g}" for value in scales)
        if scales.size < 2 or (np.diff(scales) <= 0).any():  # NaN compares false and is handled below
            return {"seeds": 0, "scales": scale_text, "note": TOO_FEW_SCALES}
        inside = np.isin(self._dataset, datasets)
        if not inside.any() or np.isnan(scales).any():  # a scale without any case: no seed is complete
            return {"seeds": 0, "scales": scale_text, "note": TOO_FEW_SEEDS}
        mean = self._curves[inside].mean(0)
        robustness = alpha_sigma(scales, mean)
        source = float(self._sources[inside].mean())
        row: dict[str, object] = {
            "seeds": int(inside.sum()),
            "scales": scale_text,
            "qualities": " ".join(f"{quality:.4f}" for quality in mean),
            "source_quality": round(source, 6),
            "alpha": _places(robustness.alpha),
            "sigma": float(f"{robustness.sigma:.9g}"),
            "alpha_from_source": _places((source - float(mean[0])) / float(scales[0])) if scales[0] > 0 else None,
            "note": NO_LOSS if robustness.alpha <= 0 else "",
        }
        return row | self._intervals(datasets, robustness)

    def _intervals(self, datasets: list[int], robustness: AlphaSigma) -> dict[str, object]:
        if sum(self._place.clusters[number] for number in datasets) < 2:
            return {}
        drawn = np.sum([self.drawn[number] for number in datasets], axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = drawn[:, :-1] / drawn[:, -1:]
        means = means[~np.isnan(means).any(1)]
        if len(means) == 0:
            return {}
        alphas, steps = steepest(self._scales, means)
        sigmas = self._scales[steps]
        low, high = percentile_interval(alphas)
        sigma_low, sigma_high = np.quantile(sigmas, (0.025, 0.975), method="nearest")
        return {
            "alpha_low": _places(float(low)),
            "alpha_high": _places(float(high)),
            "sigma_low": float(f"{sigma_low:.9g}"),
            "sigma_high": float(f"{sigma_high:.9g}"),
            "sigma_share": round(float((sigmas == robustness.sigma).mean()), 4),
        }

    def draws(self, number: int) -> bool:
        """Return True if any row needs the resampled curves of a data set."""
        scales = self._scales
        usable = scales.size >= 2 and not np.isnan(scales).any() and not (np.diff(scales) <= 0).any()
        return usable and number in self._present and self._dataset.size > 0

    def sums(self, number: int) -> Floats:
        """Return clusters × (scales + 1) for a data set: the sums of their curves, and their numbers of seeds."""
        inside = self._dataset == number
        # float32 sums of thousands of scores keep six digits, enough for the ends of an interval
        return sums_by_cluster(self._curves[inside], self._cluster[inside], self._place.clusters[number])


def _places(number: float) -> float:
    """Return a number rounded to eight decimals, without negative zero."""
    return round(number, 8) + 0.0
