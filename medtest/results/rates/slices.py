"""Failing slices, ``tables/slices.csv``: combinations of factors under which violations are more frequent.

Slices are discovered on one half of the clusters and confirmed on the other, since a rate that was searched for is too
high where it was found. Which half a cluster belongs to follows from a hash of its id, within each data set. On the
first half ``sliceline`` proposes combinations; those that differ most from the rest, and from the slices chosen before
them, are tested on the second half (:mod:`medtest.results.cube.excess`), with Holm's correction. A slice within another
one must also exceed the rest of that one, so that each further factor counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import Axes, Places
from medtest.results.cube.excess import excess, two_sided
from medtest.results.cube.intervals import FEW_CLUSTERS, percentile_interval
from medtest.results.cube.paired import holm
from medtest.results.cube.rates import BOOTSTRAP, rates
from medtest.results.cube.resampling import clusters_within
from medtest.results.rates.factors import Bools, FactorCases, counted_cases, original_score
from medtest.results.rates.images import CaseLosses
from medtest.results.rates.slice_factors import BinnedFactor, binned_factors
from medtest.results.rates.slice_search import Combination, search_slices
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion

COLUMNS = columns_in(__file__, "slices")
LEVEL = 0.05
MOST_TESTED = 10
"""Largest number of slices tested on the second half."""
MOST_WORST = 3
"""Number of worst cases named for each slice."""
_LIKELY = 1.645
"""Smallest z on the first half of a slice that is tested: a one-sided p of 0.05, before the search is counted."""
MISSING = (
    "tables/slices.csv, the combinations of factors that fail more often, is left out: it needs sliceline: pip install "
    "'medtest[slices]'"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class FailingSlices:
    """Confirmed slices of one system.

    Attributes:
        frame: Table with :data:`COLUMNS`, empty if none is confirmed.
        worst: Addresses of each slice's worst cases.
        tested: Number of slices tested on the second half.
        notices: Reason for a missing table.
    """

    frame: pd.DataFrame
    worst: tuple[tuple[str, ...], ...] = ()
    tested: int = 0
    notices: tuple[str, ...] = field(default=())

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of the worst cases of all slices."""
        return tuple(dict.fromkeys(address for worst in self.worst for address in worst))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Half:
    """Cases of one half of the clusters.

    Attributes:
        rows: int64 N; their indices among the counted cases.
        codes: int64 N × m; their bins.
        violated: bool N; violations.
        cluster: int64 N; index of the cluster.
    """

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    violated: Bools
    cluster: NDArray[np.int64]

    @property
    def clusters(self) -> int:
        return int(self.cluster.max(initial=-1)) + 1

    def inside(self, combination: Combination) -> Bools:
        chosen = np.ones(len(self.rows), dtype=np.bool_)
        for factor, code in combination:
            chosen &= self.codes[:, factor] == code
        return chosen

    def enough(self, inside: Bools) -> bool:
        """Return True if both the slice and the rest have cases of at least ten clusters."""
        return all(np.unique(self.cluster[part]).size >= FEW_CLUSTERS for part in (inside, ~inside))

    def z(self, inside: Bools, among: Bools | None = None) -> float:
        """Return the statistic of a slice against the rest, of all cases or of some."""
        among = np.ones(len(inside), dtype=np.bool_) if among is None else among
        return excess(self.violated[among], inside[among], self.cluster[among], self.clusters)[1]


def failing_slices(
    records: Records,
    primary: Criterion,
    place: Axes,
    *,
    categories: Sequence[str] = (),
    losses: CaseLosses | None = None,
) -> FailingSlices:
    """Return the confirmed slices under a criterion, those with the largest difference first.

    Args:
        records: Records of one system.
        primary: Criterion of a violation.
        place: Axes of the follow-ups.
        categories: Text columns whose values may form a slice (:attr:`medtest.core.tasks.roles.TaskTables.categories`).
        losses: Losses under the criterion, which several tables share.
    """
    nothing = pd.DataFrame(columns=list(COLUMNS))
    if records.followups.empty:
        return FailingSlices(frame=nothing)
    cases = counted_cases(records, primary, place)
    is_second = second_half(records, cases)
    if not _testable(cases, is_second):
        return FailingSlices(frame=nothing)
    if find_spec("sliceline") is None:
        return FailingSlices(frame=nothing, notices=(MISSING,))
    factors = binned_factors(records, cases, original_score(primary), categories)
    if not factors:
        return FailingSlices(frame=nothing)
    codes = np.column_stack([factor.codes for factor in factors])
    first, second = (_half(cases, codes, np.flatnonzero(is_second == side)) for side in (False, True))
    chosen = _chosen(first, second)
    p_values = [_p_value(second, combination, chosen[:at]) for at, combination in enumerate(chosen)]
    corrected = holm(p_values) if chosen else []
    losses = losses or CaseLosses(records, primary)
    rows: list[tuple[dict[str, object], tuple[str, ...]]] = []
    for combination, p, p_holm in zip(chosen, p_values, corrected, strict=True):
        figures = _figures(cases, second, second.inside(combination))
        if p_holm >= LEVEL or not float(str(figures["difference_low"])) > 0:
            continue
        worst = _worst(losses, cases, second, combination)
        found_in = first.inside(combination)
        row = {
            "slice": " & ".join(_words(factors, combination)),
            "factors": len(combination),
            **cases.criterion,
            **figures,
            "p": float(f"{p:.4g}"),
            "p_holm": float(f"{p_holm:.4g}"),
            "tested": len(chosen),
            "discovered_percent": _percent(first.violated[found_in].mean()),
            "discovered_rest_percent": _percent(first.violated[~found_in].mean()),
            "worst_address": next(iter(worst), ""),
        }
        rows.append((row, worst))
    rows.sort(key=lambda row: -float(str(row[0]["difference"])))
    return FailingSlices(
        frame=pd.DataFrame([row for row, _ in rows], columns=list(COLUMNS)),
        worst=tuple(worst for _, worst in rows),
        tested=len(chosen),
    )


def second_half(records: Records, cases: FactorCases) -> Bools:
    """Return a mask of the cases whose clusters confirm; the halves of a data set differ by at most one cluster."""
    rows = cases.rows.index.to_numpy()
    codes, names = (records.codes("cluster")[0][rows], records.codes("cluster")[1])
    is_second = np.zeros(len(rows), dtype=np.bool_)
    for number, dataset in enumerate(cases.place.datasets):
        inside = cases.place.dataset == number
        clusters = np.unique(codes[inside]).tolist()
        ordered = sorted(clusters, key=lambda code: hashlib.sha256(f"{dataset}\x1f{names[code]}".encode()).digest())
        is_second[inside] = np.isin(codes[inside], ordered[len(ordered) // 2 :])
    return is_second


def _testable(cases: FactorCases, is_second: Bools) -> bool:
    """Return True if both halves have enough clusters for a slice and the rest, and cases of both outcomes."""
    halves = (is_second, ~is_second)
    return all(
        np.unique(cases.cluster[half]).size >= 2 * FEW_CLUSTERS and 0 < cases.violated[half].sum() < half.sum()
        for half in halves
    )


def _half(cases: FactorCases, codes: NDArray[np.int64], rows: NDArray[np.int64]) -> _Half:
    _, cluster = np.unique(cases.cluster[rows], return_inverse=True)
    return _Half(rows=rows, codes=codes[rows], violated=cases.violated[rows], cluster=cluster.ravel().astype(np.int64))


def _chosen(first: _Half, second: _Half) -> list[Combination]:
    """Return the slices to test, chosen on the first half alone (and by the sizes of the second)."""
    proposed = [
        (first.z(inside), combination)
        for combination in search_slices(first.codes, first.violated)
        if first.enough(inside := first.inside(combination)) and second.enough(second.inside(combination))
    ]
    proposed.sort(key=lambda pair: -pair[0])
    chosen: list[Combination] = []
    for z, combination in proposed:
        if len(chosen) == MOST_TESTED or z < _LIKELY:
            break
        if min(_beside(first, combination, chosen)) >= _LIKELY:
            chosen.append(combination)
    return chosen


def _beside(half: _Half, combination: Combination, chosen: Sequence[Combination]) -> list[float]:
    """Return z of a slice within each chosen slice that contains it, or within all cases; without the other ones."""
    wider = [earlier for earlier in chosen if set(earlier) < set(combination)]
    others = [half.inside(earlier) for earlier in chosen if earlier not in wider]
    rest = ~np.any(others, axis=0) if others else np.ones(len(half.rows), dtype=np.bool_)
    inside = half.inside(combination)
    return [half.z(inside, rest & half.inside(earlier)) for earlier in wider] or [half.z(inside, rest)]


def _p_value(half: _Half, combination: Combination, chosen: Sequence[Combination]) -> float:
    """Return the largest two-sided p of a slice against the rest, and within the earlier slices that contain it.

    It is 1 if the slice fails less often in any of them.
    """
    statistics = [half.z(half.inside(combination))]
    if any(set(earlier) < set(combination) for earlier in chosen):
        statistics += _beside(half, combination, chosen)
    return max(two_sided(z) if z > 0 else 1.0 for z in statistics)


def _figures(cases: FactorCases, half: _Half, inside: Bools) -> dict[str, object]:
    """Return rates of the slice and of the rest on a half, and their difference, with intervals over clusters."""
    place = cases.place.take(half.rows)
    cluster, resamplers = clusters_within(place.dataset, cases.place.datasets, place.cluster)
    binned = Places(
        shape=(2, 1),
        dataset=place.dataset,
        cell=inside.astype(np.int64),
        cluster=cluster,
        resamplers=resamplers,
    )
    whole = np.ones(len(half.rows))
    efr = rates(binned, half.violated, whole, independent=True)
    rest, own = (-1, 0, -1), (-1, 1, -1)
    difference, low, high = efr.difference(own, rest)
    if efr.method[own] == efr.method[rest] == BOOTSTRAP:
        part, total = np.sum(binned.drawn(binned.sums(half.violated, whole)), axis=0)[..., 0].swapaxes(0, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = part / total
        low, high = (float(end) for end in percentile_interval(drawn[:, 1] - drawn[:, 0]))
    return {
        **efr.row(own),
        "rest_cases": int(efr.whole[rest]),
        "rest_violations": int(efr.part[rest]),
        "rest_percent": _percent(efr.rate[rest]),
        "difference": _percent(difference),
        "difference_low": _percent(low),
        "difference_high": _percent(high),
    }


def _percent(share: float) -> float:
    return round(100 * float(share), 4)


def _words(factors: Sequence[BinnedFactor], combination: Combination) -> list[str]:
    return [f"{factors[at].name} {factors[at].words[code]}" for at, code in combination]


def _worst(losses: CaseLosses, cases: FactorCases, half: _Half, combination: Combination) -> tuple[str, ...]:
    """Return the addresses of a slice's largest losses, each of another cluster."""
    rows = half.rows[half.inside(combination)]
    is_own = np.zeros(len(losses.case), dtype=np.bool_)
    is_own[cases.rows.index.to_numpy()[rows]] = True
    ranked = losses.ranked(is_own & losses.violated)
    cluster = dict(zip(cases.rows.index.to_numpy()[rows].tolist(), cases.cluster[rows].tolist(), strict=True))
    by_cluster: dict[int, int] = {}
    for position in ranked.tolist():
        by_cluster.setdefault(cluster[position], position)
        if len(by_cluster) == MOST_WORST:
            break
    return tuple(losses.addresses(np.array([*by_cluster.values()], dtype=np.intp)))
