"""Paired differences of rates between systems, over the cases on which both were judged.

Rates are shares of cases that violate their relation, or other measures of a task (for sequences, compared frames that
flipped). Two systems with the same follow-ups are compared case by case:

- The interval is that of the difference itself, first minus second: a percentile bootstrap that resamples clusters
  (seeds, patients, videos) within each data set with both systems' cases together (Davison and Hinkley, Bootstrap
  Methods, 1997, section 3.8). Where the systems differ on fewer than ten clusters, or all but fewer than ten differ
  alike, it is Tango's score interval for paired proportions with each cluster counted as one case (T. Tango, Statistics
  in Medicine 17, 1998), which errs towards being wide: resampling cannot invent a difference that it has not seen.
- p is McNemar's, exact, with clusters exchanged whole (:mod:`medtest.results.cube.paired`), corrected by Holm within
  its table: over all pairs of systems, and of the rows by relation all relations of all pairs.

One system is called better where both agree: corrected p below 0.05, and an interval that leaves 0 out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.deferred import pd
from medtest.core.tasks.base import Task
from medtest.results.columns import columns_in
from medtest.results.cube.axes import OVERALL, Axes, Floats, Places, axes
from medtest.results.cube.intervals import FEW_CLUSTERS, paired_score, percentile_ends
from medtest.results.cube.paired import clustered, holm
from medtest.results.cube.rates import BOOTSTRAP
from medtest.results.records.records_io import Records
from medtest.results.records.status import status
from medtest.suite.model import Criterion

LEVEL = 0.05
SCORE_CLUSTERS = "score_clusters"
VIOLATIONS = "violations"
RELATION, ITEM, CELL = "relation", "item", "cell"
COLUMNS = columns_in(__file__, "comparison")
CELL_COLUMNS = columns_in(__file__, "comparison_cells")
"""Columns; ``difference`` and its ends are in points, first minus second: below 0 the first violates less.

``only_first`` counts the cases that only the first violates. ``better`` names a system, or is empty without a
significant difference.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemCases:
    """One system's cases under one measure, in the order shared by all systems.

    Attributes:
        name: Name of the system.
        part: float64 N; violations, or flipped decisions, in [0, whole].
        whole: float64 N; cases, or decisions compared; 0 without a verdict.
    """

    name: str
    part: Floats
    whole: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """Rows and clusters of a measure's cases.

    Attributes:
        measure: ``violations``, or one of the task's (:attr:`medtest.core.tasks.roles.TaskTables.measures`).
        by: Kind of the rows: ``relation`` or ``item``.
        names: Names of the rows.
        place: Places of the cases, one cell for each name.
        counted: bool N; mask of the cases that enter a row.
    """

    measure: str
    by: str
    names: tuple[str, ...]
    place: Places
    counted: NDArray[np.bool_]

    @classmethod
    def of(
        cls, measure: str, by: str, names: Iterable[object], row: NDArray[np.int64], place: Axes, times: int = 1
    ) -> Grouping:
        """Group cases by row index, each repeated if it has several comparisons."""
        titles = tuple(str(name) for name in names)
        places = Places(
            shape=(len(titles),),
            dataset=np.repeat(place.dataset, times),
            cell=np.repeat(row, times),
            cluster=np.repeat(place.cluster, times),
            resamplers=place.resamplers,
        )
        pooled = np.repeat(place.pooled[place.relation], times)
        return cls(measure=measure, by=by, names=titles, place=places, counted=pooled)


def difference_table(
    sides: Mapping[str, Records], primary: Criterion, order: Sequence[str] = (), task: Task | None = None
) -> pd.DataFrame:
    """Return the differences of every pair of systems, with :data:`COLUMNS`.

    Args:
        sides: Records of each system's common cases, the same row by row, from
            :func:`medtest.results.records.common_cases.common_cases`.
        primary: Criterion of a violation.
        order: Relation ids in the desired order.
        task: Task of the systems, which may have further measures.
    """
    rows: list[dict[str, object]] = []
    records = list(sides.values())
    if len(sides) > 1 and not records[0].followups.empty:
        place = axes(records[0], order)
        task_measures = () if task is None else task.tables.differences(sides, place)
        for grouping, systems in (*_measures(sides, place, primary), *task_measures):
            rows += _corrected([row for pair in combinations(systems, 2) for row in _pair(grouping, *pair)])
    return pd.DataFrame(rows, columns=list(COLUMNS))


def cell_table(sides: Mapping[str, Records], primary: Criterion, order: Sequence[str] = ()) -> pd.DataFrame:
    """Return the differences of two systems in every cell (data set, relation, severity), with :data:`CELL_COLUMNS`.

    Args:
        sides: Records of both systems' common cases, the same row by row.
        primary: Criterion of a violation.
        order: Relation ids in the desired order.
    """
    (first, first_records), (second, second_records) = sides.items()
    rows: list[dict[str, object]] = []
    if not first_records.followups.empty:
        place = axes(first_records, order)
        cells = [(d, r, s) for d in place.datasets for r in place.relations for s in place.severities]
        number = place.dataset * int(np.prod(place.shape)) + place.cell
        grouping = Grouping.of("", CELL, range(len(cells)), number, place)
        systems = _violations({first: first_records, second: second_records}, primary)
        corrected = _corrected(list(_pair(grouping, *systems)))
        names = ("dataset", "relation", "severity")
        rows = [dict(zip(names, cells[int(str(row["name"]))], strict=True)) | row for row in corrected]
    return pd.DataFrame(rows, columns=list(CELL_COLUMNS))


@dataclass(frozen=True, kw_only=True)
class PairedChange:
    """Shares of the same cases in two runs, and their difference.

    Attributes:
        cases: Number of cases.
        clusters: Number of their patients, videos or seeds.
        first: Share in the first run, in percent; NaN without a case, as are the following.
        second: Share in the second run.
        difference: First minus second, in points.
        low: Lower end of the 95 % interval of the difference; NaN for one cluster.
        high: Upper end.
        method: Method of the interval, "" without one.
        only_first: Number of cases in which the first run has more.
        only_second: Number of cases in which the second run has more.
    """

    cases: int = 0
    clusters: int = 0
    first: float = np.nan
    second: float = np.nan
    difference: float = np.nan
    low: float = np.nan
    high: float = np.nan
    method: str = ""
    only_first: int = 0
    only_second: int = 0


def paired_change(place: Axes, first: ArrayLike, second: ArrayLike, *, noise: float = 0.0) -> PairedChange:
    """Return the shares of paired cases and their difference, with an interval as in :func:`difference_table`.

    Args:
        place: Places of the N cases.
        first: N values in [0, 1], or truth values, of one run.
        second: Values of the other run.
        noise: A cluster counts as different if its mean differs by more than this.
    """
    first_values, second_values = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if not len(first_values):
        return PairedChange()
    gains, losses = np.maximum(first_values - second_values, 0), np.maximum(second_values - first_values, 0)
    counts = [
        cells.sum((2, 3))
        for cells in place.sums(np.ones(len(first_values)), first_values, second_values, gains, losses)
    ]
    total, draws = np.concatenate(counts), np.sum(place.drawn(counts), axis=0)
    whole, a, b, _, _ = total.sum(0)
    low, high, method = _interval(total[total[:, 0] > 0], draws, noise)
    return PairedChange(
        cases=len(first_values),
        clusters=int((total[:, 0] > 0).sum()),
        first=round(100 * a / whole, 4),
        second=round(100 * b / whole, 4),
        difference=round(100 * (a - b) / whole + 0.0, 4),
        low=round(100 * low, 4),
        high=round(100 * high, 4),
        method=method,
        only_first=int((gains > 0).sum()),
        only_second=int((losses > 0).sum()),
    )


def _violations(sides: Mapping[str, Records], primary: Criterion) -> tuple[SystemCases, ...]:
    states = {name: status(records, primary) for name, records in sides.items()}
    return tuple(
        SystemCases(name=name, part=state.violated.astype(np.float64), whole=state.case.astype(np.float64))
        for name, state in states.items()
    )


def _measures(
    sides: Mapping[str, Records], place: Axes, primary: Criterion
) -> Iterator[tuple[Grouping, tuple[SystemCases, ...]]]:
    """Yield the compared measures: violations by relation, and by question if there are several."""
    first = next(iter(sides.values()))
    violations = _violations(sides, primary)
    items, item = np.unique(first.texts("item").astype(str), return_inverse=True)
    yield Grouping.of(VIOLATIONS, RELATION, place.relations, place.relation, place), violations
    if len(items) > 1:
        yield Grouping.of(VIOLATIONS, ITEM, items, item.ravel(), place), violations


def _pair(grouping: Grouping, first: SystemCases, second: SystemCases) -> Iterator[dict[str, object]]:
    """Yield the rows of one pair: all together, then each name with cases."""
    shared = (first.whole > 0) & (second.whole > 0) & grouping.counted
    first_part, second_part = first.part[shared], second.part[shared]
    place = grouping.place.take(shared)
    counts = place.sums(
        first.whole[shared],
        first_part,
        second_part,
        np.maximum(first_part - second_part, 0),
        np.maximum(second_part - first_part, 0),
    )
    total, drawn = np.concatenate(counts), np.sum(place.drawn(counts), axis=0)
    for number, name in enumerate((OVERALL, *grouping.names)):
        if number == 0 and grouping.by != RELATION:
            continue  # already among the rows by relation
        column = slice(None) if number == 0 else slice(number - 1, number)
        per_cluster = total[:, :, column].sum(2)
        if per_cluster[:, 0].any():
            yield {
                "measure": grouping.measure,
                "by": grouping.by,
                "name": name,
                "first": first.name,
                "second": second.name,
                **difference_of(per_cluster, drawn[:, :, column].sum(2)),
                "only_first": round(float(per_cluster[:, 3].sum())),
                "only_second": round(float(per_cluster[:, 4].sum())),
            }


def difference_of(counts: Floats, draws: Floats) -> dict[str, object]:
    """Return rates, difference, interval and p of paired cases, in percent and points.

    Args:
        counts: clusters × (whole, first, second, only first, only second).
        draws: replicates × the same five.
    """
    counts = counts[counts[:, 0] > 0]
    whole, first, second, _, _ = counts.sum(0)
    low, high, method = _interval(counts, draws)
    return {
        "cases": round(float(whole)),
        "clusters": len(counts),
        "first_percent": round(100 * first / whole, 4),
        "second_percent": round(100 * second / whole, 4),
        "difference": round(100 * (first - second) / whole + 0.0, 4),
        "ci_low": round(100 * low, 4),
        "ci_high": round(100 * high, 4),
        "ci_method": method,
        "p": float(f"{clustered(np.rint(counts[:, 1] - counts[:, 2])):.6g}"),
    }


def _interval(counts: Floats, draws: Floats, noise: float = 0.0) -> tuple[float, float, str]:
    """Return the ends and method of the 95 % interval of a difference of paired shares; NaN for one cluster.

    Args:
        counts: clusters × (whole, first, second, only first, only second), whole above 0.
        draws: replicates × the same five.
        noise: A cluster counts as different if its mean differs by more than this.
    """
    clusters = len(counts)
    if clusters < 2:
        return np.nan, np.nan, ""
    moved = (counts[:, 1] - counts[:, 2]) / counts[:, 0]
    if int((np.abs(moved) > noise).sum()) >= FEW_CLUSTERS and _spread(moved) >= FEW_CLUSTERS:
        with np.errstate(invalid="ignore", divide="ignore"):
            low, high = percentile_ends((draws[:, 1] - draws[:, 2]) / draws[:, 0])
        return low, high, BOOTSTRAP
    # If few clusters differ, or nearly all differ equally, resampling underestimates the variance.
    whole, _, _, only_first, only_second = counts.sum(0)
    low, high = paired_score(clusters * only_first / whole, clusters * only_second / whole, clusters)
    return low, high, SCORE_CLUSTERS


def _spread(moved: Floats) -> int:
    """Return the number of clusters that deviate from the most common difference; all if no two are equal."""
    _, alike = np.unique(moved, return_counts=True)
    return len(moved) if alike.max() == 1 else len(moved) - int(alike.max())


def _corrected(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Return the rows of one measure with corrected p and the better system; rows over all are a separate family."""
    for pooled in (True, False):
        family = [row for row in rows if (row["name"] == OVERALL) == pooled]
        for row, p in zip(family, holm([float(str(row["p"])) for row in family]), strict=True):
            row["p_holm"] = float(f"{p:.6g}")
            low, high = float(str(row["ci_low"])), float(str(row["ci_high"]))
            significant = p < LEVEL and (low > 0 or high < 0)
            row["better"] = "" if not significant else row["first"] if high < 0 else row["second"]
    return list(rows)
