"""(α,σ)-robustness of each system over each relation's scales: ``tables/alpha_sigma.csv``.

The definition stands here once (Vacavant et al., "(α,σ)-robustness", definition 1 and equation 6): over the scales
σ_1 < … < σ_m of a disturbance with qualities Q_1 … Q_m, α is the steepest loss per unit of scale,
``max_k (Q_k - Q_{k+1}) / (σ_{k+1} - σ_k)``, and σ the scale σ_k where that step begins. The paper writes the difference
of qualities the other way round and means a drop; its own published values are those of the drop. Equal steps (within
floating error) go to the larger scale. α ≤ 0 says that quality never falls, and is kept as it is.

Scales are the follow-ups' physical ``scale``, never their severity. The curve is the mean over the seeds that were
scored at every scale, so that no step of it comes from seeds that dropped out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.cases import UNCHANGED
from medtest.results import statistics
from medtest.results.records_io import Records

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = NDArray[np.float64]

TIE = 1e-9
"""Steps that differ by less than this fraction of the curve's range per unit of scale are equal."""

COLUMNS: tuple[str, ...] = (
    "dataset",
    "relation",
    "group",
    "score",
    "against",
    "seeds",
    "scales",
    "qualities",
    "source_quality",
    "alpha",
    "alpha_low",
    "alpha_high",
    "sigma",
    "sigma_low",
    "sigma_high",
    "sigma_share",
    "alpha_from_source",
    "note",
)
NO_LOSS = "quality never falls over these scales"
TOO_FEW_SCALES = "fewer than two distinct scales"
TOO_FEW_SEEDS = "no seed was scored at all scales"


@dataclass(frozen=True, kw_only=True)
class AlphaSigma:
    """(α,σ) of one curve.

    Attributes:
        alpha: Steepest loss of quality per unit of scale; at or below 0 when quality never falls.
        sigma: Scale where that step begins.
        step: Number of that step, from 0.
    """

    alpha: float
    sigma: float
    step: int


def alpha_sigma(scales: ArrayLike, qualities: ArrayLike) -> AlphaSigma:
    """Return (α,σ) of one quality curve.

    Args:
        scales: m distinct scales in any order, m ≥ 2.
        qualities: The quality at each, higher is better.

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
    alphas, steps = _steepest(sigma, quality[None])
    return AlphaSigma(alpha=float(alphas[0]), sigma=float(sigma[steps[0]]), step=int(steps[0]))


def _steepest(sigma: Floats, curves: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return α and the step's number of many curves (N×m) over the same ascending scales."""
    slopes = -np.diff(curves, axis=1) / np.diff(sigma)
    alphas = slopes.max(axis=1)
    slack = TIE * np.abs(slopes).max(axis=1)
    tied = slopes >= (alphas - slack)[:, None]
    steps = slopes.shape[1] - 1 - np.argmax(tied[:, ::-1], axis=1)
    return alphas, steps


def alpha_sigma_table(records: Records, scores: Sequence[str], against: Sequence[str]) -> pd.DataFrame:
    """Return (α,σ) for every data set (and all of them), relation, score and reference, with :data:`COLUMNS`.

    ``unchanged`` and relations in published mode (whose scales differ from seed to seed) are left out.

    Args:
        records: Records of one system.
        scores: Score columns; rules over several scores have no curve and are passed over.
        against: ``truth`` and ``source``.
    """
    import pandas as pd

    cases = records.followups
    leveled = cases.loc[((cases["severity"] > 0) & (cases["relation"] != UNCHANGED)).to_numpy()]
    rows: list[dict[str, object]] = []
    for reference in against:
        for score in scores:
            column = score if reference == "truth" else f"self_{score}"
            if column not in cases.columns or leveled.empty or not leveled[column].notna().any():
                continue
            for relation, chosen in leveled.groupby("relation", observed=True, sort=False):
                names = [str(name) for name in pd.unique(chosen["dataset"].astype(str))]
                for dataset in [*names, "all"]:
                    part = chosen if dataset == "all" else chosen.loc[(chosen["dataset"] == dataset).to_numpy()]
                    head: dict[str, object] = {
                        "dataset": dataset,
                        "relation": str(relation),
                        "group": str(part["group"].iloc[0]),
                        "score": score,
                        "against": reference,
                    }
                    rows.append(head | _one_curve(part, column, score if reference == "truth" else "", head))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _one_curve(cases: pd.DataFrame, column: str, source_score: str, head: dict[str, object]) -> dict[str, object]:
    severity = cases["severity"].to_numpy(dtype=np.int64)
    scale = cases["scale"].to_numpy(dtype=np.float64)
    levels = np.unique(severity)
    scales = np.array([np.median(scale[severity == level]) for level in levels])
    order = np.argsort(scales, kind="stable")
    levels, scales = levels[order], scales[order]
    listed = " ".join(f"{value:g}" for value in scales)
    if scales.size < 2 or (np.diff(scales) <= 0).any():
        return {"seeds": 0, "scales": listed, "note": TOO_FEW_SCALES}
    curves, sources, clusters = _complete(cases, column, source_score, levels)
    if len(curves) == 0:
        return {"seeds": 0, "scales": listed, "note": TOO_FEW_SEEDS}
    mean = curves.mean(0)
    found = alpha_sigma(scales, mean)
    source = float(sources.mean())
    row: dict[str, object] = {
        "seeds": len(curves),
        "scales": listed,
        "qualities": " ".join(f"{quality:.4f}" for quality in mean),
        "source_quality": round(source, 6),
        "alpha": round(found.alpha, 8),
        "sigma": found.sigma,
        "alpha_from_source": round((source - float(mean[0])) / float(scales[0]), 8) if scales[0] > 0 else None,
        "note": NO_LOSS if found.alpha <= 0 else "",
    }
    return row | _intervals(curves, clusters, scales, found, head)


def _complete(
    cases: pd.DataFrame, column: str, source_score: str, levels: NDArray[np.int64]
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return curves (seeds × levels), source qualities and cluster numbers of the seeds scored at every level."""
    seed = cases["dataset"].astype(str) + "\x1f" + cases["seed_id"].astype(str) + "\x1f" + cases["item"].astype(str)
    numbers, count = statistics.group_numbers(seed.to_numpy(dtype=object).astype(str))
    place = np.argmax(cases["severity"].to_numpy(dtype=np.int64)[:, None] == levels, axis=1)
    values = cases[column].to_numpy(dtype=np.float64, na_value=np.nan)
    sums, seen = np.zeros((count, levels.size)), np.zeros((count, levels.size))
    known = ~np.isnan(values)
    np.add.at(sums, (numbers[known], place[known]), values[known])
    np.add.at(seen, (numbers[known], place[known]), 1.0)
    first = np.zeros(count, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    before = np.ones(count)
    if source_score:
        before = cases[f"source_{source_score}"].to_numpy(dtype=np.float64, na_value=np.nan)[first]
    whole = (seen > 0).all(1) & ~np.isnan(before)
    cluster = (cases["dataset"].astype(str) + "\x1f" + cases["cluster"].astype(str)).to_numpy(dtype=object)[first]
    codes, _ = statistics.group_numbers(cluster[whole].astype(str))
    return sums[whole] / seen[whole], before[whole], codes


def _intervals(
    curves: Floats, clusters: NDArray[np.int64], scales: Floats, found: AlphaSigma, head: dict[str, object]
) -> dict[str, object]:
    count = int(clusters.max()) + 1
    if count < 2:
        return {}
    sums = np.zeros((count, scales.size + 1))
    np.add.at(sums[:, :-1], clusters, curves)
    np.add.at(sums[:, -1], clusters, 1.0)
    # float32 sums of thousands of scores keep six digits: ample for the ends of an interval
    drawn = statistics.Resampler(count, f"alpha_sigma {head['dataset']}").sums(sums.astype(np.float32))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = drawn[:, :-1].astype(np.float64) / drawn[:, -1:]
    alphas, steps = _steepest(scales, means)
    sigmas = scales[steps]
    low, high = statistics.percentile_interval(alphas)
    sigma_low, sigma_high = np.quantile(sigmas, (0.025, 0.975), method="nearest")
    return {
        "alpha_low": round(float(low), 8),
        "alpha_high": round(float(high), 8),
        "sigma_low": float(sigma_low),
        "sigma_high": float(sigma_high),
        "sigma_share": round(float((sigmas == found.sigma).mean()), 4),
    }
