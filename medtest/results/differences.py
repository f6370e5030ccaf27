"""Which of two systems is better? Paired differences of rates over the cases that both were judged on.

Rates are shares of cases that violate their relation (of sequences: of comparisons of frames that flipped). Two systems
that were shown the same follow-ups are compared case by case:

- The interval is that of the difference itself, first minus second: a percentile bootstrap that resamples clusters
  (seeds, patients, videos) within each data set with both systems' cases together (Davison and Hinkley, Bootstrap
  Methods, 1997, section 3.8). Where the systems differ on fewer than ten clusters it is Tango's score interval for
  paired proportions with each cluster counted as one case (T. Tango, Statistics in Medicine 17, 1998), which errs
  towards being wide: resampling cannot invent a difference that it has not seen.
- p is McNemar's, exact, with clusters exchanged whole (:mod:`medtest.results.mcnemar`), corrected by Holm for all that
  stands beside it: all pairs of systems, and of the rows by relation all relations of all pairs.

One system is called better where both agree: corrected p below 0.05, and an interval that leaves 0 out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.results import mcnemar, statistics
from medtest.results.cells import Axes, axes, status
from medtest.results.efr import BOOTSTRAP, OVERALL
from medtest.results.flips import AUTO, sequences_of
from medtest.results.paired import holm
from medtest.results.records_io import Records
from medtest.suite.model import Criterion

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

LEVEL = 0.05
SCORE_CLUSTERS = "score_clusters"
VIOLATIONS, FLIPS = "violations", "flips"
RELATION, ITEM = "relation", "item"
COLUMNS: tuple[str, ...] = (
    "measure",
    "by",
    "name",
    "first",
    "second",
    "cases",
    "clusters",
    "first_percent",
    "second_percent",
    "difference",
    "ci_low",
    "ci_high",
    "ci_method",
    "only_first",
    "only_second",
    "p",
    "p_holm",
    "better",
)
"""``difference`` and its ends are in points, first minus second: below 0 the first violates less. ``only_first`` are
cases that the first alone violates. ``better`` names a system, or is empty where no difference is shown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemCases:
    """One system's cases under one measure, in the order that all systems share.

    Attributes:
        name: The system.
        part: float64 N; violations, or flipped decisions, in [0, whole].
        whole: float64 N; cases, or decisions compared; 0 where there is no verdict.
    """

    name: str
    part: Floats
    whole: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """How the cases of a measure fall into rows and clusters.

    Attributes:
        measure: ``violations`` or ``flips``.
        by: What rows are: ``relation`` or ``item``.
        names: Names of the rows.
        row: int64 N; number of each case's row; -1 where it enters none.
        dataset: int64 N.
        cluster: int64 N; number within its data set.
        place: Data sets, clusters and resamplers.
    """

    measure: str
    by: str
    names: tuple[str, ...]
    row: Integers
    dataset: Integers
    cluster: Integers
    place: Axes


def difference_table(sides: Mapping[str, Records], primary: Criterion, order: Sequence[str] = ()) -> pd.DataFrame:
    """Return the differences of every pair of systems, with :data:`COLUMNS`.

    Args:
        sides: Records of each system's common cases, row by row the same, as
            :func:`medtest.results.common_cases.common_cases` returns them.
        primary: The criterion of a violation.
        order: Relation ids in the order wanted.
    """
    import pandas as pd

    rows: list[dict[str, object]] = []
    records = list(sides.values())
    if len(sides) > 1 and not records[0].followups.empty:
        for grouping, found in _measures(sides, axes(records[0], order), primary):
            rows += _corrected([row for pair in combinations(found, 2) for row in _pair(grouping, *pair)])
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _measures(
    sides: Mapping[str, Records], place: Axes, primary: Criterion
) -> Iterator[tuple[Grouping, tuple[SystemCases, ...]]]:
    """Yield what is compared: violations by relation, and by question where several are asked; flips of sequences."""
    first = next(iter(sides.values()))
    judged = {
        name: status(one, score=primary.score, threshold=primary.threshold, against=primary.against)
        for name, one in sides.items()
    }
    violations = tuple(
        SystemCases(name=name, part=one.violated.astype(np.float64), whole=one.case.astype(np.float64))
        for name, one in judged.items()
    )
    pooled = place.pooled[place.relation]
    items, item = np.unique(first.texts("item").astype(str), return_inverse=True)
    by = [(RELATION, place.relations, place.relation)]
    by += [(ITEM, tuple(str(name) for name in items), item.ravel())] if len(items) > 1 else []
    for name, names, row in by:
        yield (
            Grouping(
                measure=VIOLATIONS,
                by=name,
                names=names,
                row=np.where(pooled, row, -1).astype(np.int64),
                dataset=place.dataset,
                cluster=place.cluster,
                place=place,
            ),
            violations,
        )
    yield from _flips(sides, place)


def _flips(sides: Mapping[str, Records], place: Axes) -> Iterator[tuple[Grouping, tuple[SystemCases, ...]]]:
    found = {name: sequences_of(one, place) for name, one in sides.items()}
    there = {name: one for name, one in found.items() if one is not None}
    if len(there) < len(sides):
        return
    first = next(iter(there.values()))
    flips = []
    for name, one in there.items():
        value, known = one.changes(AUTO)
        size = one.sizes[:, None] if one.multi else 1.0
        whole = np.asarray(known * size, np.float64).ravel()
        flips.append(SystemCases(name=name, part=np.rint(value * size).ravel(), whole=whole))
    repeated = first.rows.shape[1] - 1
    relation = place.relation[first.first]
    yield (
        Grouping(
            measure=FLIPS,
            by=RELATION,
            names=place.relations,
            row=np.repeat(np.where(place.pooled[relation], relation, -1), repeated),
            dataset=np.repeat(first.dataset, repeated),
            cluster=np.repeat(first.cluster, repeated),
            place=place,
        ),
        tuple(flips),
    )


def _pair(grouping: Grouping, first: SystemCases, second: SystemCases) -> Iterator[dict[str, object]]:
    """Yield the rows of one pair: all together, then each name with cases."""
    both = (first.whole > 0) & (second.whole > 0) & (grouping.row >= 0)
    counts = [_per_cluster(grouping, number, first, second, both) for number in range(len(grouping.place.datasets))]
    draws = [
        resampler.sums(one.reshape(len(one), -1).astype(np.float32)).astype(np.float64).reshape(-1, *one.shape[1:])
        for resampler, one in zip(grouping.place.resamplers, counts, strict=True)
    ]
    total, drawn = np.concatenate(counts), np.sum(draws, axis=0)
    for number, name in enumerate((OVERALL, *grouping.names)):
        if number == 0 and grouping.by != RELATION:
            continue  # it stands among the rows by relation
        column = slice(None) if number == 0 else slice(number - 1, number)
        per_cluster = total[:, :, column].sum(2)
        if per_cluster[:, 0].any():
            yield {
                "measure": grouping.measure,
                "by": grouping.by,
                "name": name,
                "first": first.name,
                "second": second.name,
                **_difference(per_cluster, drawn[:, :, column].sum(2)),
                "only_first": round(float(per_cluster[:, 3].sum())),
                "only_second": round(float(per_cluster[:, 4].sum())),
            }


def _per_cluster(
    grouping: Grouping, number: int, first: SystemCases, second: SystemCases, both: NDArray[np.bool_]
) -> Floats:
    """Return clusters × (whole, first, second, only first, only second) × names of one data set."""  # noqa: RUF002
    here = both & (grouping.dataset == number)
    size, rows = grouping.place.clusters[number], len(grouping.names)
    flat = grouping.cluster[here] * rows + grouping.row[here]
    one, other = first.part[here], second.part[here]
    columns = (first.whole[here], one, other, np.maximum(one - other, 0), np.maximum(other - one, 0))
    counted = [np.bincount(flat, weights=weights, minlength=size * rows).reshape(size, rows) for weights in columns]
    return np.stack(counted, axis=1)


def _difference(counts: Floats, draws: Floats) -> dict[str, object]:
    """Return rates, difference, interval and p of one row.

    Args:
        counts: clusters × (whole, first, second, only first, only second).
        draws: replicates × the same five.
    """  # noqa: RUF002
    counts = counts[counts[:, 0] > 0]
    whole, first, second, only_first, only_second = counts.sum(0)
    clusters, net = len(counts), counts[:, 1] - counts[:, 2]
    low = high = np.nan
    method = ""
    if clusters > 1 and int((net != 0).sum()) >= statistics.FEW_CLUSTERS:
        with np.errstate(invalid="ignore", divide="ignore"):
            ends = statistics.percentile_interval((draws[:, 1] - draws[:, 2]) / draws[:, 0])
        low, high, method = float(ends[0]), float(ends[1]), BOOTSTRAP
    elif clusters > 1:
        low, high = statistics.paired_score(clusters * only_first / whole, clusters * only_second / whole, clusters)
        method = SCORE_CLUSTERS
    return {
        "cases": round(float(whole)),
        "clusters": clusters,
        "first_percent": round(100 * first / whole, 4),
        "second_percent": round(100 * second / whole, 4),
        "difference": round(100 * (first - second) / whole + 0.0, 4),
        "ci_low": round(100 * low, 4),
        "ci_high": round(100 * high, 4),
        "ci_method": method,
        "p": float(f"{mcnemar.clustered(np.rint(net)):.6g}"),
    }


def _corrected(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Return the rows of one measure with corrected p and who is better; those over all are a family of their own."""
    for pooled in (True, False):
        family = [row for row in rows if (row["name"] == OVERALL) == pooled]
        for row, p in zip(family, holm([float(str(row["p"])) for row in family]), strict=True):
            row["p_holm"] = float(f"{p:.6g}")
            low, high = float(str(row["ci_low"])), float(str(row["ci_high"]))
            shown = p < LEVEL and (low > 0 or high < 0)
            row["better"] = "" if not shown else row["first"] if high < 0 else row["second"]
    return list(rows)
