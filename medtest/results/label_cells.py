"""Which cases of a classifier stand in which cell of its tables: the sources, and each relation's follow-ups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from medtest.cases import Classes, Verdict
from medtest.results.cube.axes import Axes
from medtest.results.cube.resampling import Resampler
from medtest.results.decisions import Bools, Decisions, Floats, classes_of, decisions_of, probabilities_of
from medtest.results.label_sums import Integers, SumColumns, grouped, rows_of
from medtest.results.records_io import Records
from medtest.results.retraining import ORIGINAL

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, eq=False)
class Chosen:
    """The cases of one relation, or the sources, on one data set.

    Attributes:
        side: The records that they are among.
        rows: int64 n; which of them.
        levels: Number of severities.
        resampler: Draws the data set's clusters.
        original: Whether they are the sources, which have no severity of their own.
        key: Relation and number of the data set.
    """

    side: LabelSide
    rows: Integers
    levels: int
    resampler: Resampler
    original: bool
    key: tuple[str, int]

    @property
    def size(self) -> int:
        """Number of cases."""
        return len(self.rows)

    @property
    def clusters(self) -> int:
        """Number of clusters of the data set."""
        return self.resampler.clusters

    @cached_property
    def _severity(self) -> Integers:
        return self.side.severity[self.rows]

    def per_cluster(self, layout: SumColumns) -> Floats:
        """Return clusters × severities + all × width sums."""
        rows = rows_of(self.side.decided, self.rows, paired=not self.original)
        numbers = self.side.cluster[self.rows] * self.levels + self._severity
        found = grouped(rows, numbers, self.clusters * self.levels).reshape(self.clusters, self.levels, layout.width)
        return np.concatenate([found, found.sum(1, keepdims=True)], axis=1)

    def draw(self, sums: Floats) -> Floats:
        """Return replicates × severities + all × width sums of resampled clusters."""
        flat = sums.reshape(len(sums), -1).astype(np.float32)
        return self.resampler.sums(flat).astype(np.float64).reshape(-1, *sums.shape[1:])

    def count(self, where: Bools) -> Integers:
        """Return how many cases are so at every severity and at all, severities + 1.

        Args:
            where: bool, one for each record of the side.
        """
        inside = self._severity[where[self.rows]]
        found = np.bincount(inside, minlength=self.levels)
        return np.append(found, found.sum()).astype(np.int64)

    def scored(self, severity: int | None = None) -> Integers:
        """Return the cases with probabilities and an expected answer, at a severity or at all."""
        kept = self.side.decided.labelled[self.rows] & self.side.decided.answered[self.rows]
        kept &= ~np.isnan(self.side.probabilities[self.rows]).all(1)
        if severity is not None:
            kept &= self._severity == severity
        return self.rows[kept]


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelSide:
    """Follow-ups or sources, as arrays over their records.

    Attributes:
        frame: The records.
        decided: What was answered and expected.
        dataset: Number of each record's data set.
        relation: Number of its relation; -1 for sources.
        severity: Number of its severity; 0 for sources.
        cluster: Number of its cluster within the data set.
    """

    frame: pd.DataFrame
    decided: Decisions
    dataset: Integers
    relation: Integers
    severity: Integers
    cluster: Integers
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    def kept(self, key: Any, make: Callable[[], T]) -> T:
        """Return what ``make`` gave the first time for a key."""
        if key not in self._kept:
            self._kept[key] = make()
        value: T = self._kept[key]
        return value

    @cached_property
    def error(self) -> Bools:
        """Whether each record is an ERROR."""
        return np.asarray((self.frame["verdict"].astype(str) == Verdict.ERROR.value), dtype=bool)

    @cached_property
    def skipped(self) -> Bools:
        """Whether each record has no answer and is no ERROR."""
        return ~self.error & ~self.decided.answered

    @cached_property
    def probabilities(self) -> Floats:
        """Probabilities of each record, N×C, NaN where there are none."""
        return probabilities_of(self.frame, self.decided.classes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cases:
    """All cases of a classifier's records.

    Attributes:
        place: The axes of the follow-ups.
        classes: The classes.
        followups: Follow-ups.
        sources: Sources.
        resamplers: One for each data set.
    """

    place: Axes
    classes: Classes
    followups: LabelSide
    sources: LabelSide
    resamplers: tuple[Resampler, ...]

    def choose(self, relation: str, dataset: int) -> Chosen:
        """Return the cases of a relation, or the sources for ``original``, on one data set.

        Args:
            relation: Relation id or ``original``.
            dataset: The data set's number.
        """
        original = relation == ORIGINAL
        side = self.sources if original else self.followups
        number = -1 if original else self.place.relations.index(relation)
        return Chosen(
            side=side,
            rows=np.flatnonzero((side.dataset == dataset) & (side.relation == number)),
            levels=len(self.place.severities),
            resampler=self.resamplers[dataset],
            original=original,
            key=(relation, dataset),
        )


def cases_of(records: Records, place: Axes) -> Cases:
    """Return the cases of records.

    Sources whose cluster has no follow-up (a run that is not whole) are clusters of their own; those of data sets
    without any follow-up are left out.

    Args:
        records: Records of one system, with follow-ups.
        place: Their axes.
    """
    classes = classes_of(records)
    followups = LabelSide(
        frame=records.followups,
        decided=decisions_of(records.followups, classes, records.classes),
        dataset=place.dataset,
        relation=place.relation,
        severity=place.severity,
        cluster=place.cluster,
    )
    known = dict(zip(zip(place.dataset, records.texts("cluster"), strict=True), place.cluster, strict=True))
    numbers = {name: number for number, name in enumerate(place.datasets)}
    counts = list(place.clusters)
    frame = records.sources
    dataset = np.array([numbers.get(str(name), -1) for name in frame["dataset"]], np.int64)
    cluster = np.zeros(len(frame), np.int64)
    for row, name in enumerate(frame["cluster"].astype(str)):
        key = (dataset[row], name)
        if dataset[row] >= 0 and key not in known:
            known[key] = counts[dataset[row]]
            counts[dataset[row]] += 1
        cluster[row] = known.get(key, 0)
    resamplers = [
        made if made.clusters == count else Resampler(count, name)
        for made, count, name in zip(place.resamplers, counts, place.datasets, strict=True)
    ]
    sources = LabelSide(
        frame=frame,
        decided=decisions_of(frame, classes, records.classes),
        dataset=dataset,
        relation=np.full(len(frame), -1, np.int64),
        severity=np.zeros(len(frame), np.int64),
        cluster=cluster,
    )
    return Cases(place=place, classes=classes, followups=followups, sources=sources, resamplers=tuple(resamplers))
