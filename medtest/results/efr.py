"""Error finding rates (MedTest report, equation 3) from records: ``tables/efr.csv``.

Every executed follow-up of a row is counted once: ``generated = cases + errors + skipped + source_failed``.

- ``errors``: the system or the relation broke.
- ``source_failed``: the follow-up was answered, but the source case is an ERROR or its score is zero, so that
  equation 6 has nothing to divide by.
- ``skipped``: everything else without a verdict (no room for the object, no prediction, no expected answer).

Pools: ``overall`` over all cases of all relations but ``unchanged``; ``overall_cells`` the mean of the cells'
percentages, a cell being one relation on one data set (at one severity, or at all); data sets pooled are ``all``.
Intervals: see :mod:`medtest.results.statistics`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.oracles import criteria
from medtest.results import columns, statistics
from medtest.results.cells import Axes, Status, axes, status
from medtest.results.records_io import Records

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns.EFR
ALL = "all"
OVERALL = "overall"
OVERALL_CELLS = "overall_cells"

WILSON = "wilson"
BOOTSTRAP = "cluster_bootstrap"
WILSON_CLUSTERS = "wilson_clusters"


def _with_margins(counts: NDArray[Any], pooled: NDArray[np.bool_]) -> NDArray[Any]:
    """Append the ``overall`` relation and the ``all`` severity to the last two axes (relations × severities)."""
    with_severity = np.concatenate([counts, counts.sum(-1, keepdims=True)], axis=-1)
    overall = with_severity[..., pooled, :].sum(-2, keepdims=True)
    return np.concatenate([with_severity, overall], axis=-2)


def _count(where: NDArray[np.bool_], place: Axes) -> NDArray[np.float64]:
    """Return counts: data sets + all × relations + overall × severities + all."""
    cells = place.shape[0] * place.shape[1]
    flat = np.bincount(place.dataset[where] * cells + place.cell[where], minlength=len(place.datasets) * cells)
    per_set = flat.reshape(len(place.datasets), *place.shape).astype(np.float64)
    both = np.concatenate([per_set, per_set.sum(0, keepdims=True)])
    return _with_margins(both, place.pooled)


def _per_cluster(where: NDArray[np.bool_], place: Axes, number: int) -> NDArray[np.float32]:
    """Return clusters × relations × severities counts of one data set."""
    chosen = where & (place.dataset == number)
    cells = place.shape[0] * place.shape[1]
    flat = np.bincount(place.cluster[chosen] * cells + place.cell[chosen], minlength=place.clusters[number] * cells)
    return flat.reshape(place.clusters[number], *place.shape).astype(np.float32)


def _rate(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _mean_of_cells(violations: NDArray[Any], cases: NDArray[Any], pooled: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the mean rate over the cells that hold a case.

    Args:
        violations: … × data sets × relations × severities + all.
        cases: Of the same shape.
        pooled: Relations that count.
    """
    rates = _rate(violations[..., pooled, :], cases[..., pooled, :])
    known = ~np.isnan(rates)
    number = known.sum((-3, -2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(number > 0, np.where(known, rates, 0.0).sum((-3, -2)) / number, np.nan)


@dataclass(frozen=True, kw_only=True)
class _Rates:
    """Rates and intervals, each data sets + all × relations + overall + overall_cells × severities + all."""

    rate: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    method: NDArray[np.object_]


@dataclass(kw_only=True)
class _Resampled:
    """Per-cluster counts of one criterion, resampled, data set by data set."""

    cases: list[NDArray[np.float64]]
    violations: list[NDArray[np.float64]]
    clusters: NDArray[np.float64]
    hit: NDArray[np.float64]
    clean: NDArray[np.float64]


def _cells_margin(per_cluster: NDArray[np.float32], pooled: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Append ``overall``, and ``overall`` once more for ``overall_cells``: its clusters are the same."""
    margins = _with_margins(per_cluster, pooled)
    return np.concatenate([margins, margins[..., -1:, :]], axis=-2)


def _resample(found: Status, place: Axes) -> _Resampled:
    cases: list[NDArray[np.float64]] = []
    violations: list[NDArray[np.float64]] = []
    shape = (len(place.datasets) + 1, place.shape[0] + 2, place.shape[1] + 1)
    clusters, hit, clean = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for number, resampler in enumerate(place.resamplers):
        n = _per_cluster(found.case, place, number)
        v = _per_cluster(found.violated, place, number)
        flat = np.concatenate([n.reshape(len(n), -1), v.reshape(len(v), -1)], axis=1)
        drawn = resampler.sums(flat).astype(np.float64).reshape(resampler.replicates, 2, *place.shape)
        cases.append(drawn[:, 0])
        violations.append(drawn[:, 1])
        n_all, v_all = _cells_margin(n, place.pooled), _cells_margin(v, place.pooled)
        clusters[number] = (n_all > 0).sum(0)
        hit[number] = (v_all > 0).sum(0)
        clean[number] = (v_all < n_all).sum(0)
    for total in (clusters, hit, clean):
        total[-1] = total[:-1].sum(0)
    return _Resampled(cases=cases, violations=violations, clusters=clusters, hit=hit, clean=clean)


def _bootstrap(drawn: _Resampled, place: Axes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the bootstrap intervals, in the shape of :class:`_Rates`."""
    lows: list[NDArray[np.float64]] = []
    highs: list[NDArray[np.float64]] = []
    sets = range(len(place.datasets))
    for chosen in [*([number] for number in sets), list(sets)]:
        n = np.stack([drawn.cases[number] for number in chosen], axis=1)
        v = np.stack([drawn.violations[number] for number in chosen], axis=1)
        n_all, v_all = _with_margins(n, place.pooled), _with_margins(v, place.pooled)
        pooled_rates = _rate(v_all.sum(1), n_all.sum(1))
        cells = _mean_of_cells(v_all[:, :, :-1], n_all[:, :, :-1], place.pooled)
        low, high = statistics.percentile_interval(np.concatenate([pooled_rates, cells[:, None, :]], axis=1))
        lows.append(low)
        highs.append(high)
    return np.stack(lows), np.stack(highs)


def _rates(
    found: Status,
    place: Axes,
    cases: NDArray[np.float64],
    violations: NDArray[np.float64],
) -> _Rates:
    sets = list(range(len(place.datasets)))
    cells = np.stack(
        [
            _mean_of_cells(violations[chosen][:, :-1], cases[chosen][:, :-1], place.pooled)
            for chosen in (*([number] for number in sets), sets)
        ]
    )
    rate = np.concatenate([_rate(violations, cases), cells[:, None, :]], axis=1)
    drawn = _resample(found, place)
    low, high = _bootstrap(drawn, place)
    method = np.full(rate.shape, BOOTSTRAP, dtype=object)

    few = (drawn.hit < statistics.FEW_CLUSTERS) | (drawn.clean < statistics.FEW_CLUSTERS)
    by_cluster = statistics.wilson(rate * drawn.clusters, drawn.clusters)
    low, high = np.where(few, by_cluster[0], low), np.where(few, by_cluster[1], high)
    method[few] = WILSON_CLUSTERS

    single = np.zeros_like(few)
    single[:, :-1] = cases == drawn.clusters[:, :-1]
    plain = statistics.wilson(violations, cases)
    low[:, :-1] = np.where(single[:, :-1], plain[0], low[:, :-1])
    high[:, :-1] = np.where(single[:, :-1], plain[1], high[:, :-1])
    method[single] = WILSON
    return _Rates(rate=rate, low=low, high=high, method=method)


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """What an EFR table covers: every score at every threshold against every reference.

    A rule that has no threshold is covered once, at 0; the table leaves its threshold empty.
    """

    scores: tuple[str, ...]
    thresholds: tuple[float, ...]
    against: tuple[str, ...]

    def __iter__(self) -> Iterator[tuple[str, float, str]]:
        for against in self.against:
            for score in self.scores:
                for threshold in (0.0,) if score in criteria.NO_THRESHOLD else self.thresholds:
                    yield score, threshold, against


def available(records: Records, wanted: Criteria) -> Iterator[tuple[str, float, str]]:
    """Yield the criteria whose columns hold any number at all."""
    known: dict[str, bool] = {}
    for score, threshold, against in wanted:
        for name in criteria.columns_needed(score, against):
            if name not in known:
                known[name] = bool((~np.isnan(records.floats(name))).any())
        if all(known[name] for name in criteria.columns_needed(score, against)):
            yield score, threshold, against


def of_criterion(table: pd.DataFrame, score: str, threshold: float) -> NDArray[np.bool_]:
    """Return which rows of a table are of a score at a threshold; a rule that has none has an empty one there."""
    limits = table["threshold"].to_numpy(dtype=np.float64)
    same = np.isnan(limits) if score in criteria.NO_THRESHOLD else np.isclose(limits, threshold, rtol=0, atol=1e-12)
    return np.asarray((table["score"] == score).to_numpy(dtype=bool) & same, dtype=np.bool_)


def efr_table(records: Records, wanted: Criteria, place: Axes | None = None) -> pd.DataFrame:
    """Return the table of error finding rates, with exactly :data:`COLUMNS`.

    Args:
        records: Records of one system.
        wanted: Scores, thresholds and references.
        place: What :func:`axes` gave for these records; None makes it.
    """
    import pandas as pd

    if records.followups.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    found = axes(records) if place is None else place
    known: dict[bytes, _Rates] = {}
    parts = [
        _one_criterion(records, found, known, score, threshold, against)
        for score, threshold, against in available(records, wanted)
    ]
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def _one_criterion(
    records: Records,
    place: Axes,
    known: dict[bytes, _Rates],
    score: str,
    threshold: float,
    against: str,
) -> pd.DataFrame:
    import pandas as pd

    found = status(records, score=score, threshold=threshold, against=against)
    counts = {
        "cases": _count(found.case, place),
        "violations": _count(found.violated, place),
        "errors": _count(found.error, place),
        "skipped": _count(found.skipped, place),
        "source_failed": _count(found.source_failed, place),
    }
    # "both" is often what one of the two scores says alone: intervals are made once for the same violations
    key = hashlib.sha256(found.case.tobytes() + found.violated.tobytes()).digest()
    if key not in known:
        known[key] = _rates(found, place, counts["cases"], counts["violations"])
    rates = known[key]
    counts = {name: np.concatenate([value, value[:, -1:]], axis=1) for name, value in counts.items()}
    generated = counts["cases"] + counts["errors"] + counts["skipped"] + counts["source_failed"]
    keep = np.nonzero(generated.ravel() > 0)[0]
    d, r, s = np.unravel_index(keep, generated.shape)
    datasets = np.array([*place.datasets, ALL], dtype=object)
    relations = np.array([*place.relations, OVERALL, OVERALL_CELLS], dtype=object)
    groups = np.array([*place.groups, ALL, ALL], dtype=object)
    severities = np.array([*(str(level) for level in place.severities), ALL], dtype=object)
    chosen = {name: value.ravel()[keep].astype(np.int64) for name, value in counts.items()}
    total = generated.ravel()[keep]
    return pd.DataFrame(
        {
            "dataset": datasets[d],
            "relation": relations[r],
            "group": groups[r],
            "severity": severities[s],
            "score": score,
            "threshold": np.nan if score in criteria.NO_THRESHOLD else threshold,
            "against": against,
            **chosen,
            "efr_percent": np.round(100 * rates.rate.ravel()[keep], 4),
            "ci_low": np.round(100 * rates.low.ravel()[keep], 4),
            "ci_high": np.round(100 * rates.high.ravel()[keep], 4),
            "ci_method": np.where(chosen["cases"] > 0, rates.method.ravel()[keep], ""),
            "generated": total.astype(np.int64),
            "efr_generated_percent": np.round(100 * chosen["violations"] / total, 4),
        }
    )


__all__ = [
    "ALL",
    "BOOTSTRAP",
    "COLUMNS",
    "OVERALL",
    "OVERALL_CELLS",
    "WILSON",
    "WILSON_CLUSTERS",
    "Axes",
    "Criteria",
    "Status",
    "available",
    "axes",
    "efr_table",
    "of_criterion",
    "status",
]
