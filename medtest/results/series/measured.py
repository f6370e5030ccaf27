"""(α,σ) over a measured property, where every seed stands at a scale of its own: rows of ``tables/alpha_sigma.csv``.

Each cluster (a liver with its noise repeats) is one point. There is one case a scale, so that no interval can be had; a
permutation p says how often chance alone gives an α as large.
"""

from __future__ import annotations

from collections.abc import Iterator

from medtest.results.rates.efr import ALL
from medtest.results.records.records_io import Records
from medtest.results.series.robustness import robustness_of
from medtest.results.series.series import Series
from medtest.results.series.series_records import MEASURED, CurveSettings, curve_of

TOO_FEW_POINTS = "fewer than two distinct values of the property"


def measured_rows(records: Records, score: str, shape: CurveSettings) -> Iterator[dict[str, object]]:
    """Yield a row for each measured relation on each data set and on all together.

    Args:
        records: Records of one system.
        score: Score column, against the truth.
        shape: ``min_step`` counts.
    """
    frame = records.followups
    inside = frame.loc[(frame["group"].astype(str) == MEASURED).to_numpy(dtype=bool)]
    for relation in dict.fromkeys(inside["relation"].astype(str)):
        rows = inside.loc[(inside["relation"].astype(str) == relation).to_numpy(dtype=bool)]
        datasets = list(dict.fromkeys(rows["dataset"].astype(str)))
        for dataset in [*datasets, ALL]:
            here = rows if dataset == ALL else rows.loc[(rows["dataset"].astype(str) == dataset).to_numpy(dtype=bool)]
            known = here.dropna(subset=["scale", score])
            curve = curve_of("", Records(followups=here, sources=records.sources), relation, score, shape)
            head = {"dataset": dataset, "relation": relation, "group": MEASURED, "score": score, "against": "truth"}
            yield {**head, "seeds": int(known["seed_id"].astype(str).nunique()), **_numbers(curve)}


def _numbers(curve: Series | None) -> dict[str, object]:
    if curve is None:
        return {"seeds": 0, "note": TOO_FEW_POINTS}
    found = robustness_of(curve)
    p = "" if found.p is None else f"one case a scale: permutation p {found.p:.3g}"
    return {
        "scales": " ".join(f"{value:g}" for value in curve.scales),
        "qualities": " ".join(f"{quality:.4f}" for quality in curve.qualities),
        "source_quality": round(found.mean_quality, 6),
        "alpha": round(found.alpha, 8),
        "sigma": float(f"{found.sigma:.9g}"),
        "note": "; ".join(part for part in (found.note, p) if part),
    }
