"""Quality over scales from records: one :class:`SeriesSet` for each relation, one algorithm for each system.

A relation with levels gives every seed a quality at every scale; only seeds scored at all scales count, as in
``tables/alpha_sigma.csv``. A measured property (``group == "measured"``) gives every seed its own scale: each cluster
(a liver) is one point, its repeats (noise) averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.results.cube.axes import ALL
from medtest.results.records.records_io import Records
from medtest.results.series.robustness import robustness_of
from medtest.results.series.series import Floats, Series, SeriesSet, make_series

MEASURED = "measured"
"""Group of relations that measure a scale and change nothing."""

TOO_FEW_POINTS = "fewer than two distinct values of the property"
_NEEDED = ("dataset", "seed_id", "cluster", "relation", "group", "severity", "scale")


def series_sets(
    records: Mapping[str, Records],
    score: str,
    *,
    title: str = "",
    include_source: bool = False,
    min_step: float = 0.0,
) -> list[SeriesSet]:
    """Return the curves of every relation, in the order of the first system's records.

    Args:
        records: Records by system.
        score: Score column, higher is better.
        title: Prefix of each relation's name.
        include_source: If True, the source case, at scale 0, is the first point.
        min_step: Neighbouring scales closer than this are merged; 0 merges only equal ones.
    """
    names = list(dict.fromkeys(str(name) for run in records.values() for name in run.followups["relation"].unique()))
    sets = []
    for name in names:
        if name == UNCHANGED:
            continue
        curves = [
            curve_of(system, run, name, score, include_source=include_source, min_step=min_step)
            for system, run in records.items()
        ]
        common = _over_the_same_seeds([curve for curve in curves if curve is not None])
        if common:
            sets.append(
                SeriesSet(title=f"{title}-{name}" if title else name, quality=score, scale=name, series=tuple(common))
            )
    return sets


def curve_of(
    system: str, records: Records, relation: str, score: str, *, include_source: bool = False, min_step: float = 0.0
) -> Series | None:
    """Return one system's curve under one relation; None if fewer than two scales were scored."""
    frame = records.followups
    rows = frame.loc[(frame["relation"].astype(str) == relation).to_numpy(dtype=bool)]
    if rows.empty or score not in rows.columns:
        return None
    is_measured = str(rows["group"].iloc[0]) == MEASURED
    values = rows[[*_NEEDED, score]].dropna(subset=["scale", score])
    if values.empty:
        return None
    if is_measured:
        return _measured(system, values, score, min_step)
    values = values.loc[(values["severity"] > 0).to_numpy(dtype=bool)]
    if values.empty:
        return None
    return _leveled(system, values, records, score, include_source=include_source, min_step=min_step)


def _measured(system: str, values: pd.DataFrame, score: str, min_step: float) -> Series | None:
    keys = [values[name].astype(str) for name in ("dataset", "cluster")]
    points = values.groupby(keys, sort=False)[["scale", score]].mean()
    scales = points["scale"].to_numpy()
    curve = make_series(
        system, scales, points[score].to_numpy(), labels=[f"{value:.4g}" for value in scales], min_step=min_step
    )
    return curve if curve.scales.size > 1 else None


def _leveled(
    system: str, values: pd.DataFrame, records: Records, score: str, *, include_source: bool, min_step: float
) -> Series | None:
    seeds = values["dataset"].astype(str) + "\x1f" + values["seed_id"].astype(str)
    table = values.assign(seed=seeds).pivot_table(index="seed", columns="severity", values=score, aggfunc="mean")
    scales = values.groupby("severity", sort=True)["scale"].median().reindex(table.columns).to_numpy(dtype=np.float64)
    clusters = values["dataset"].astype(str) + "\x1f" + values["cluster"].astype(str)
    cluster_of = dict(zip(seeds, clusters, strict=True))
    if include_source and f"source_{score}" in records.followups.columns:
        table, scales = _with_source(table, scales, records, score)
    complete = table.dropna()
    if complete.empty or scales.size < 2:
        return None
    images = complete.to_numpy(dtype=np.float64)
    _, numbers = np.unique([cluster_of[str(seed)] for seed in complete.index], return_inverse=True)
    curve = make_series(
        system,
        scales,
        images.mean(0),
        images=images,
        clusters=numbers.astype(np.int64),
        seeds=[str(seed) for seed in complete.index],
        min_step=min_step,
    )
    return curve if curve.scales.size > 1 else None


def _with_source(table: pd.DataFrame, scales: Floats, records: Records, score: str) -> tuple[pd.DataFrame, Floats]:
    """Prepend the source's quality, at scale 0."""
    frame = records.followups
    seeds = frame["dataset"].astype(str) + "\x1f" + frame["seed_id"].astype(str)
    source = frame.assign(seed=seeds).groupby("seed", sort=False)[f"source_{score}"].first()
    table = table.copy()
    table.insert(0, 0, source.reindex(table.index))
    return table, np.concatenate([[0.0], scales])


def _over_the_same_seeds(curves: Sequence[Series]) -> list[Series]:
    """Keep the seeds on which every system was scored, so that systems are compared on the same images."""
    seed_sets = [set(curve.seeds) for curve in curves if curve.seeds]
    if not seed_sets:
        return list(curves)
    common = set.intersection(*seed_sets)
    restricted = []
    for curve in curves:
        if curve.images is None or curve.clusters is None or not common:
            restricted.append(curve)
            continue
        rows: NDArray[np.int64] = np.array([n for n, seed in enumerate(curve.seeds) if seed in common], np.int64)
        restricted.append(
            replace(
                curve,
                images=curve.images[rows],
                clusters=curve.clusters[rows],
                qualities=curve.images[rows].mean(0),
                seeds=tuple(curve.seeds[int(n)] for n in rows),
            )
        )
    return restricted


def measured_rows(records: Records, score: str, min_step: float = 0.0) -> Iterator[dict[str, object]]:
    """Yield rows of ``tables/alpha_sigma.csv``: one for each measured relation on each data set and on all together.

    With one case per scale there is no interval; a permutation p gives the probability of an α as large by chance.

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
