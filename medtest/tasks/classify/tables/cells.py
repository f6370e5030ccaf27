"""Cases of a classifier by table cell: the sources, and each relation's follow-ups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np

from medtest.core.cases import SOURCE, Classes, Verdict
from medtest.core.deferred import pd
from medtest.results.cube.axes import ALL, Axes, Integers, Places, with_all
from medtest.results.cube.resampling import Resampler
from medtest.results.published.retraining import ORIGINAL
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.decisions import (
    EXPECTED,
    LABEL,
    PROBABILITIES,
    SOURCE_LABEL,
    Bools,
    Decisions,
    Floats,
    classes_of,
    decisions_of,
    probabilities_of,
)
from medtest.tasks.classify.tables.sums import SumColumns, rows_of

T = TypeVar("T")
_COLUMNS = ("dataset", "verdict", LABEL, SOURCE_LABEL, EXPECTED, PROBABILITIES)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cases:
    """All cases of a classifier's records, sources before follow-ups.

    Attributes:
        place: Axes of the cases; the sources are the first relation, without severities.
        layout: Layout of the sums over cases.
        frame: Columns from which decisions are read.
        decided: Answers and expected labels.
    """

    place: Axes
    layout: SumColumns
    frame: pd.DataFrame
    decided: Decisions
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def classes(self) -> Classes:
        """The classes."""
        return self.decided.classes

    @cached_property
    def error(self) -> Bools:
        """Mask of the cases that are an ERROR."""
        return np.asarray(self.frame["verdict"].astype(str) == Verdict.ERROR.value, dtype=bool)

    @cached_property
    def skipped(self) -> Bools:
        """Mask of the cases without an answer that are not an ERROR."""
        return ~self.error & ~self.decided.answered

    @cached_property
    def probabilities(self) -> Floats:
        """Probabilities of each case, N×C, NaN if missing."""
        return probabilities_of(self.frame, self.classes)

    def kept(self, key: Any, make: Callable[[], T]) -> T:
        """Return the cached value of ``make`` for a key."""
        if key not in self._kept:
            self._kept[key] = make()
        value: T = self._kept[key]
        return value

    def by_dataset(self, make: Callable[[CellPool], T]) -> dict[str, dict[str, T]]:
        """Return ``make`` of every relation's cases, by data set (and ``all``) and relation."""
        results: dict[str, dict[str, T]] = {name: {} for name in (*self.place.datasets, ALL)}
        for relation in self.place.relations:
            for pool in self._pools(relation):
                results[pool.dataset][relation] = make(pool)
        return results

    def _pools(self, relation: str) -> Iterator[CellPool]:
        place = self.place
        rows = np.flatnonzero(place.relation == place.relations.index(relation))
        by_set = [rows[place.dataset[rows] == number] for number in range(len(place.datasets))]
        cells = Places(
            shape=(len(place.severities),),
            dataset=place.dataset[rows],
            cell=place.severity[rows],
            cluster=place.cluster[rows],
            resamplers=place.resamplers,
        )
        summands = rows_of(self.decided, rows, paired=relation != ORIGINAL)
        sums = [with_all(block, -1).swapaxes(1, 2) for block in cells.sums(*summands.T)]
        drawn = cache(lambda: cells.drawn(sums))
        every = list(range(len(sums)))
        for dataset, numbers in [*((name, [number]) for number, name in enumerate(place.datasets)), (ALL, every)]:
            if any(by_set[number].size for number in numbers):
                yield CellPool(
                    cases=self,
                    dataset=dataset,
                    relation=relation,
                    numbers=tuple(numbers),
                    rows=tuple(by_set[number] for number in numbers),
                    sums=tuple(sums[number] for number in numbers),
                    drawn=drawn,
                )


@dataclass(frozen=True, kw_only=True, eq=False)
class CellPool:
    """Cases of one relation, or the sources, on one data set or all together.

    Attributes:
        cases: Cases that contain the pool.
        dataset: Name of the data set, or ``all``.
        relation: The relation, ``original`` for the sources.
        numbers: Indices of the data sets.
        rows: Indices of the cases for each data set.
        sums: clusters × (severities + all) × width for each data set.
        drawn: Function that returns replicates × (severities + all) × width sums of resampled clusters for every data
            set.
    """

    cases: Cases
    dataset: str
    relation: str
    numbers: tuple[int, ...]
    rows: tuple[Integers, ...]
    sums: tuple[Floats, ...]
    drawn: Callable[[], list[Floats]]

    @property
    def original(self) -> bool:
        """True for the sources, which have no severity."""
        return self.relation == ORIGINAL

    @property
    def clusters(self) -> int:
        """Number of clusters of its data sets."""
        return sum(len(block) for block in self.sums)

    @cached_property
    def totals(self) -> Floats:
        """Sums of all clusters, (severities + all) × width."""
        return np.asarray(np.sum([block.sum(0) for block in self.sums], axis=0), np.float64)

    @cached_property
    def draws(self) -> Floats:
        """Sums of resampled clusters, replicates × (severities + all) × width."""
        every = self.drawn()
        return np.asarray(np.sum([every[number] for number in self.numbers], axis=0), np.float64)

    def count(self, where: Bools | None = None) -> Integers:
        """Return the number of selected cases at every severity and in total, severities + 1.

        Args:
            where: bool, one for each case of the records; None counts all.
        """
        rows = np.concatenate(self.rows)
        inside = self.cases.place.severity[rows if where is None else rows[where[rows]]]
        counts = np.bincount(inside, minlength=len(self.cases.place.severities))
        return np.append(counts, counts.sum()).astype(np.int64)

    def scored(self, severity: int | None = None) -> list[Integers]:
        """Return the cases of each data set with probabilities and an expected answer, at one severity or all."""
        by_set, decided = [], self.cases.decided
        for rows in self.rows:
            usable = decided.labelled[rows] & decided.answered[rows]
            usable &= ~np.isnan(self.cases.probabilities[rows]).all(1)
            if severity is not None:
                usable &= self.cases.place.severity[rows] == severity
            by_set.append(rows[usable])
        return by_set


def cases_of(records: Records, place: Axes) -> Cases:
    """Return the cases of records.

    Sources whose cluster has no follow-up (in an incomplete run) form their own clusters; sources of data sets without
    any follow-up are left out.

    Args:
        records: Records of one system, with follow-ups.
        place: Axes of the records.
    """
    numbers = {name: number for number, name in enumerate(place.datasets)}
    sources = records.sources.loc[records.sources["dataset"].astype(str).isin(list(numbers)).to_numpy(dtype=bool)]
    dataset = np.array([numbers[str(name)] for name in sources["dataset"]], np.int64)
    cluster_of = dict(zip(zip(place.dataset, records.texts("cluster"), strict=True), place.cluster, strict=True))
    counts = list(place.clusters)
    cluster = np.zeros(len(sources), np.int64)
    for row, key in enumerate(zip(dataset, sources["cluster"].astype(str), strict=True)):
        if key not in cluster_of:
            cluster_of[key] = counts[key[0]]
            counts[key[0]] += 1
        cluster[row] = cluster_of[key]
    first = np.zeros(len(sources), np.int64)
    combined = Axes(
        shape=(place.shape[0] + 1, place.shape[1]),
        datasets=place.datasets,
        relations=(ORIGINAL, *place.relations),
        groups=(SOURCE, *place.groups),
        severities=place.severities,
        pooled=np.append(False, place.pooled),
        dataset=np.concatenate([dataset, place.dataset]),
        cell=np.concatenate([first, place.cell + place.shape[1]]),
        cluster=np.concatenate([cluster, place.cluster]),
        seed=np.concatenate([first - 1, place.seed]),
        resamplers=tuple(
            resampler if resampler.clusters == count else Resampler(count, name)
            for resampler, count, name in zip(place.resamplers, counts, place.datasets, strict=True)
        ),
    )
    classes = classes_of(records)
    sides = [side.reindex(columns=list(_COLUMNS)).astype(object) for side in (sources, records.followups)]
    frame = pd.concat(sides, ignore_index=True)
    return Cases(
        place=combined,
        layout=SumColumns(classes=len(classes.names), multi=classes.multi),
        frame=frame,
        decided=decisions_of(frame, classes, records.classes),
    )
