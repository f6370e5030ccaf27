"""(α,σ) over a measured property, with a separate scale for every seed: rows of ``tables/alpha_sigma.csv``.

Each cluster (a liver with its noise repeats) is one point. With one case per scale there is no interval; a permutation
p gives the probability of an α as large by chance.
"""

from __future__ import annotations

from collections.abc import Iterator

from medtest.results.rates.efr import ALL
from medtest.results.records.records_io import Records
from medtest.results.series.robustness import robustness_of
from medtest.results.series.series import Series
from medtest.results.series.series_records import MEASURED, curve_of

TOO_FEW_POINTS = "fewer than two distinct values of the property"


def measured_rows(records: Records, score: str, min_step: float = 0.0) -> Iterator[dict[str, object]]:
    """Yield one row for each measured relation on each data set and on all together.

    Args:
        records: Records of one system.
        score: Score column, against the truth.
        min_step: Neighbouring scales closer than this are merged; 0 merges only equal ones.
    """
    frame = records.followups
    inside = frame.loc[(frame["group"].astype(str) == MEASURED).to_numpy(dtype=bool)]
    for relation in dict.fromkeys(inside["relation"].astype(str)):
        rows = inside.loc[(inside["relation"].astype(str) == relation).to_numpy(dtype=bool)]
        datasets = list(dict.fromkeys(rows["dataset"].astype(str)))
        for dataset in [*datasets, ALL]:
            subset = rows if dataset == ALL else rows.loc[(rows["dataset"].astype(str) == dataset).to_numpy(dtype=bool)]
            scored = subset.dropna(subset=["scale", score])
            curve = curve_of("", Records(followups=subset, sources=records.sources), relation, score, min_step=min_step)
            head = {"dataset": dataset, "relation": relation, "group": MEASURED, "score": score, "against": "truth"}
            yield {**head, "seeds": int(scored["seed_id"].astype(str).nunique()), **_numbers(curve)}


def _numbers(curve: Series | None) -> dict[str, object]:
    if curve is None:
        return {"seeds": 0, "note": TOO_FEW_POINTS}
    robustness = robustness_of(curve)
    p = "" if robustness.p is None else f"one case a scale: permutation p {robustness.p:.3g}"
    return {
        "scales": " ".join(f"{value:g}" for value in curve.scales),
        "qualities": " ".join(f"{quality:.4f}" for quality in curve.qualities),
        "source_quality": round(robustness.mean_quality, 6),
        "alpha": round(robustness.alpha, 8),
        "sigma": float(f"{robustness.sigma:.9g}"),
        "note": "; ".join(part for part in (robustness.note, p) if part),
    }
