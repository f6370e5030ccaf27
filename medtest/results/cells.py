"""What each follow-up counts as under a criterion, and into which cell of a table it falls; all tables share both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.cases import UNCHANGED, Verdict
from medtest.oracles import criteria
from medtest.results import statistics
from medtest.results.records_io import Records


@dataclass(frozen=True, kw_only=True)
class Status:
    """What each follow-up counts as under one criterion; every follow-up is exactly one of the four.

    Attributes:
        case: It is in the denominator.
        error: The system or the relation broke.
        skipped: There is no verdict for a reason of the case's own.
        source_failed: The source case gives nothing to compare with.
        violated: It is in the denominator and a violation.
    """

    case: NDArray[np.bool_]
    error: NDArray[np.bool_]
    skipped: NDArray[np.bool_]
    source_failed: NDArray[np.bool_]
    violated: NDArray[np.bool_]


def status(records: Records, *, score: str, threshold: float, against: str) -> Status:
    """Return what each follow-up counts as under one criterion."""
    columns = {name: records.floats(name) for name in criteria.columns_needed(score, against)}
    judged = criteria.judge(columns, score=score, threshold=threshold, against=against)
    error = (records.followups["verdict"] == Verdict.ERROR.value).to_numpy(dtype=bool)
    case = judged.applies & ~error
    lost = judged.source_failed | records.source_broken
    if against == "source":
        # an answer that is scored against the truth and not against the source: there is no answer to the source
        lost = lost | (~np.isnan(records.floats(criteria.components(score)[0])) & ~judged.applies)
    source_failed = lost & ~case & ~error
    return Status(
        case=case,
        error=error,
        skipped=~(case | error | source_failed),
        source_failed=source_failed,
        violated=judged.violated & case,
    )


@dataclass(frozen=True, kw_only=True)
class Axes:
    """How follow-ups fall into cells.

    Attributes:
        datasets: Names, in order.
        relations: Names, in order.
        groups: Group of each relation.
        severities: Levels, ascending.
        pooled: bool R; the relation enters ``overall`` rows.
        dataset: Number of each follow-up's data set.
        cell: relation number × severities + severity number, of each follow-up.
        cluster: Number of each follow-up's cluster within its data set.
        clusters: How many clusters each data set has.
        seed: Number of each follow-up's source case, over all data sets.
        resamplers: One for each data set; every table of the records resamples the same clusters.
    """

    datasets: tuple[str, ...]
    relations: tuple[str, ...]
    groups: tuple[str, ...]
    severities: tuple[int, ...]
    pooled: NDArray[np.bool_]
    dataset: NDArray[np.int64]
    cell: NDArray[np.int64]
    cluster: NDArray[np.int64]
    clusters: tuple[int, ...]
    seed: NDArray[np.int64]
    resamplers: tuple[statistics.Resampler, ...]

    @property
    def relation(self) -> NDArray[np.int64]:
        """Number of each follow-up's relation."""
        return self.cell // len(self.severities)

    @property
    def severity(self) -> NDArray[np.int64]:
        """Number of each follow-up's severity."""
        return self.cell % len(self.severities)

    @property
    def shape(self) -> tuple[int, int]:
        """Relations × severities."""
        return len(self.relations), len(self.severities)


def _ordered(values: NDArray[np.object_], first: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the distinct values, those of ``first`` in its order before the others, and each value's number."""
    import pandas as pd

    codes, unique = pd.factorize(values)
    names = [str(name) for name in unique]
    order = [name for name in first if name in names] + [name for name in names if name not in first]
    place = np.array([order.index(name) for name in names], dtype=np.int64)
    return tuple(order), place[codes] if len(names) else codes.astype(np.int64)


def axes(records: Records, relation_order: Sequence[str] = ()) -> Axes:
    """Return how the follow-ups fall into cells; relations follow ``relation_order``."""
    datasets, dataset = _ordered(records.texts("dataset"), ())
    relations, relation = _ordered(records.texts("relation"), relation_order)
    group_of = dict(zip(records.texts("relation"), records.texts("group"), strict=True))
    severities, severity = np.unique(records.followups["severity"].to_numpy(dtype=np.int64), return_inverse=True)
    cluster_text = records.texts("cluster")
    cluster = np.zeros(len(dataset), np.int64)
    counts: list[int] = []
    for number in range(len(datasets)):
        inside = dataset == number
        _, codes = _ordered(cluster_text[inside], ())
        cluster[inside] = codes
        counts.append(int(codes.max()) + 1 if codes.size else 0)
    return Axes(
        datasets=datasets,
        relations=relations,
        groups=tuple(str(group_of[name]) for name in relations),
        severities=tuple(int(level) for level in severities),
        pooled=np.array([name != UNCHANGED for name in relations], dtype=bool),
        dataset=dataset,
        cell=relation * len(severities) + severity.ravel(),
        cluster=cluster,
        clusters=tuple(counts),
        seed=_seed_numbers(records, dataset),
        resamplers=tuple(statistics.Resampler(count, name) for name, count in zip(datasets, counts, strict=True)),
    )


def _seed_numbers(records: Records, dataset: NDArray[np.int64]) -> NDArray[np.int64]:
    import pandas as pd

    numbers = dataset
    for name in ("seed_id", "item"):
        codes, unique = pd.factorize(records.texts(name))
        _, numbers = np.unique(numbers * max(1, len(unique)) + codes, return_inverse=True)
    return numbers.astype(np.int64).ravel()
