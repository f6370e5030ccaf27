"""Expected differences between two runs: shares and clustering from finished runs, or the worst case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from medtest.results.cube.axes import Floats, axes
from medtest.results.cube.intervals import wilson_ends
from medtest.results.cube.power import PairedShares, clustering_of
from medtest.results.records.common_cases import common_cases
from medtest.results.records.records_io import Records
from medtest.results.records.status import status
from medtest.suite.model import Criterion


@dataclass(frozen=True, kw_only=True)
class ExpectedDifferences:
    """Expected differences between two runs of one suite.

    Attributes:
        overall: Over all relations.
        relations: By relation, if a finished run has cases of it.
        percent: Rates of the finished runs, in percent, over all relations.
        cases: Number of cases behind the estimate; 0 for the worst case.
        clusters: Number of clusters behind the estimate.
        measured: True if ``discordant`` was counted between two runs, False if it was derived from one run's rate.
    """

    overall: PairedShares = PairedShares()
    relations: Mapping[str, PairedShares] = field(default_factory=dict)
    percent: tuple[float, ...] = ()
    cases: int = 0
    clusters: int = 0
    measured: bool = False

    def of(self, relation: str) -> PairedShares:
        """Return the expectation for a relation; the overall one if it was never run."""
        return self.relations.get(relation, self.overall)


def expected_of_one(run: Records, primary: Criterion) -> ExpectedDifferences | None:
    """Return the expected differences of two independent runs with the error rate of a finished one.

    Two runs with a rate p that err independently differ on 2 p (1 - p) of the cases; systems that err on the same cases
    differ on fewer. Differences are assumed to be correlated within clusters as violations are.

    Args:
        run: Records of the finished run.
        primary: Criterion of a violation.

    Returns:
        None if no case has a verdict.
    """
    state = status(run, primary)
    expected = _expected(run, state.case, state.violated.astype(np.float64), one_run=True)
    if expected is None:
        return None
    pooled = state.case & _pooled(run)
    return replace(expected, percent=(100.0 * float(state.violated[pooled].mean()),))


def expected_of_two(first: Records, second: Records, primary: Criterion) -> ExpectedDifferences | None:
    """Return the differences of two finished runs on their common cases.

    Args:
        first: Records of one run.
        second: Records of the other run.
        primary: Criterion of a violation.

    Returns:
        None if no case has a verdict in both.
    """
    left, right = common_cases([first, second]).records
    if left.followups.empty:
        return None
    sides = [status(run, primary) for run in (left, right)]
    shared = sides[0].case & sides[1].case
    values = sides[0].violated.astype(np.float64) - sides[1].violated
    expected = _expected(left, shared, values, one_run=False)
    if expected is None:
        return None
    pooled = shared & _pooled(left)
    percent = tuple(100.0 * float(side.violated[pooled].mean()) for side in sides)
    return replace(expected, percent=percent, measured=True)


def _pooled(run: Records) -> NDArray[np.bool_]:
    place = axes(run)
    return np.asarray(place.pooled[place.relation], dtype=np.bool_)


def _expected(run: Records, counted: NDArray[np.bool_], values: Floats, *, one_run: bool) -> ExpectedDifferences | None:
    place = axes(run)
    cluster = place.dataset * (max(place.clusters, default=0) + 1) + place.cluster
    pooled = counted & place.pooled[place.relation]
    if not pooled.any():
        return None
    by_relation = {
        name: _paired(values[inside], cluster[inside], one_run=one_run)
        for number, name in enumerate(place.relations)
        if (inside := counted & (place.relation == number)).any()
    }
    return ExpectedDifferences(
        overall=_paired(values[pooled], cluster[pooled], one_run=one_run),
        relations=by_relation,
        cases=int(pooled.sum()),
        clusters=len(np.unique(cluster[pooled])),
    )


def _paired(values: Floats, cluster: NDArray[np.int64], *, one_run: bool) -> PairedShares:
    """Return the shares of differing cases; without any, the upper Wilson end for as many clusters."""
    net = np.bincount(np.unique(cluster, return_inverse=True)[1], weights=values)
    upper = wilson_ends(0.0, len(net))[1]
    share, touched = float((values != 0).mean()) or upper, float((net != 0).mean()) or upper
    return PairedShares(
        discordant=2 * share * (1 - share) if one_run else share,
        clustering=clustering_of(values, cluster),
        touched=1 - (1 - touched) ** 2 if one_run else touched,
    )
