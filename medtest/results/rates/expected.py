"""How two runs are expected to differ: shares and clustering from finished runs, or the worst case."""

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
    """What is expected of two runs of one suite.

    Attributes:
        overall: Over all relations.
        relations: By relation, where a finished run has cases of it.
        percent: The rates that finished runs had, in percent, over all relations.
        cases: Cases behind it; 0 for the worst case.
        clusters: Clusters behind it.
        measured: Whether ``discordant`` was counted between two runs, and not derived from one run's rate.
    """

    overall: PairedShares = PairedShares()
    relations: Mapping[str, PairedShares] = field(default_factory=dict)
    percent: tuple[float, ...] = ()
    cases: int = 0
    clusters: int = 0
    measured: bool = False

    def of(self, relation: str) -> PairedShares:
        """Return what is expected of a relation; of one that was never run, what all have together."""
        return self.relations.get(relation, self.overall)


def expected_of_one(run: Records, primary: Criterion) -> ExpectedDifferences | None:
    """Return what is expected of two runs that err as often as a finished one, each for itself.

    Two runs with a rate p that err independently differ on 2 p (1 - p) of the cases; systems that err on the same
    cases differ on fewer. Differences are taken to be alike within a cluster as violations are.

    Args:
        run: Its records.
        primary: When a case is a violation.

    Returns:
        None where no case has a verdict.
    """
    judged = status(run, score=primary.score, threshold=primary.threshold, against=primary.against)
    found = _expected(run, judged.case, judged.violated.astype(np.float64), one_run=True)
    if found is None:
        return None
    pooled = judged.case & _pooled(run)
    return replace(found, percent=(100.0 * float(judged.violated[pooled].mean()),))


def expected_of_two(first: Records, second: Records, primary: Criterion) -> ExpectedDifferences | None:
    """Return how two finished runs differ on the cases that both have.

    Args:
        first: Records of one run.
        second: Those of the other.
        primary: When a case is a violation.

    Returns:
        None where no case has a verdict in both.
    """
    one, other = common_cases([first, second]).records
    if one.followups.empty:
        return None
    sides = [
        status(run, score=primary.score, threshold=primary.threshold, against=primary.against) for run in (one, other)
    ]
    both = sides[0].case & sides[1].case
    values = sides[0].violated.astype(np.float64) - sides[1].violated
    found = _expected(one, both, values, one_run=False)
    if found is None:
        return None
    pooled = both & _pooled(one)
    percent = tuple(100.0 * float(side.violated[pooled].mean()) for side in sides)
    return replace(found, percent=percent, measured=True)


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
        name: _paired(values[here], cluster[here], one_run=one_run)
        for number, name in enumerate(place.relations)
        if (here := counted & (place.relation == number)).any()
    }
    return ExpectedDifferences(
        overall=_paired(values[pooled], cluster[pooled], one_run=one_run),
        relations=by_relation,
        cases=int(pooled.sum()),
        clusters=len(np.unique(cluster[pooled])),
    )


def _paired(values: Floats, cluster: NDArray[np.int64], *, one_run: bool) -> PairedShares:
    """Return shares of cases; where none was seen, what as many clusters without any leave possible (Wilson's end)."""
    net = np.bincount(np.unique(cluster, return_inverse=True)[1], weights=values)
    none = wilson_ends(0.0, len(net))[1]
    share, touched = float((values != 0).mean()) or none, float((net != 0).mean()) or none
    return PairedShares(
        discordant=2 * share * (1 - share) if one_run else share,
        clustering=clustering_of(values, cluster),
        touched=1 - (1 - touched) ** 2 if one_run else touched,
    )
