"""Where cases stand: their data set, their cell of the other axes, and their cluster, which intervals resample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import UNCHANGED
from medtest.results.cube.resampling import Resampler
from medtest.results.records.records_io import Records

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

ALL, OVERALL, OVERALL_CELLS = "all", "overall", "overall_cells"
"""What margins are called: data sets or severities together, relations together, and the mean of cells."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Where N cases (or sequences, answers, comparisons) stand.

    Attributes:
        shape: Lengths of the axes of a data set's cells.
        dataset: int64 N; number of the data set.
        cell: int64 N; number of the cell, the last axis fastest.
        cluster: int64 N; number of the cluster within its data set.
        resamplers: One for each data set; all that is resampled here is of the same draws.
    """

    shape: tuple[int, ...]
    dataset: Integers
    cell: Integers
    cluster: Integers
    resamplers: tuple[Resampler, ...]

    @property
    def clusters(self) -> tuple[int, ...]:
        """How many clusters each data set has."""
        return tuple(one.clusters for one in self.resamplers)

    def take(self, rows: NDArray[np.bool_] | Integers) -> Self:
        """Return the places of some cases, in their order."""
        return replace(self, dataset=self.dataset[rows], cell=self.cell[rows], cluster=self.cluster[rows])

    def totals(self, values: ArrayLike, add: np.ufunc = np.add) -> Floats:
        """Return the sums of a value over the cells of each data set, and of all, (data sets + 1) × shape.

        Args:
            values: A number, or truth value, of each case.
            add: ``np.maximum`` gives maxima in place of sums, 0 where there is no case.
        """
        size = int(np.prod(self.shape))
        found = np.zeros(len(self.resamplers) * size)
        add.at(found, self.dataset * size + self.cell, np.asarray(values, np.float64))
        return with_all(found.reshape(-1, *self.shape), 0, add)

    def sums(self, *values: ArrayLike) -> list[Floats]:
        """Return the sums of K values by cluster: for each data set float64 clusters × K × shape.

        Args:
            values: A number, or truth value, of each case.
        """
        size = int(np.prod(self.shape))
        numbers = [np.asarray(one, np.float64) for one in values]
        found = []
        for number, clusters in enumerate(self.clusters):
            here = np.flatnonzero(self.dataset == number)
            flat = self.cluster[here] * size + self.cell[here]
            sums = [np.bincount(flat, weights=one[here], minlength=clusters * size) for one in numbers]
            found.append(np.stack(sums, dtype=np.float64).reshape(len(sums), clusters, *self.shape).swapaxes(0, 1))
        return found

    def drawn(self, sums: Sequence[Floats]) -> list[Floats]:
        """Return sums of resampled clusters: for each data set float64 replicates × K × shape.

        Args:
            sums: What :meth:`sums` gave.
        """
        return self.drawn_of_each([sums])[0]

    def drawn_of_each(self, sums: Sequence[Sequence[Floats]]) -> list[list[Floats]]:
        """Return what :meth:`drawn` gives of each of several sums, in one pass over the draws."""
        found = [one.drawn_of_each([own[number] for own in sums]) for number, one in enumerate(self.resamplers)]
        return [[own[number] for own in found] for number in range(len(sums))]


def with_all(values: Floats, axis: int, add: np.ufunc = np.add) -> Floats:
    """Return values with their sum (or what ``add`` makes of them) at the end of an axis."""
    return np.concatenate([values, add.reduce(values, axis=axis, keepdims=True, initial=0)], axis=axis)


@dataclass(frozen=True, kw_only=True, eq=False)
class Axes(Places):
    """How follow-ups fall into cells of relations × severities.

    Attributes:
        datasets: Names, in order.
        relations: Names, in order.
        groups: Group of each relation.
        severities: Levels, ascending.
        pooled: bool R; the relation enters ``overall`` rows.
        seed: Number of each follow-up's source case, over all data sets.
    """

    datasets: tuple[str, ...]
    relations: tuple[str, ...]
    groups: tuple[str, ...]
    severities: tuple[int, ...]
    pooled: NDArray[np.bool_]
    seed: Integers

    @property
    def relation(self) -> Integers:
        """Number of each follow-up's relation."""
        return self.cell // len(self.severities)

    @property
    def severity(self) -> Integers:
        """Number of each follow-up's severity."""
        return self.cell % len(self.severities)

    def take(self, rows: NDArray[np.bool_] | Integers) -> Self:
        """Return the places of some follow-ups, in their order."""
        return replace(super().take(rows), seed=self.seed[rows])

    def names(self, *pools: str) -> tuple[dict[str, tuple[object, ...]], ...]:
        """Return what the cells of a table with margins are called, a mapping from column to names for each axis.

        Args:
            pools: Rows below the relations.
        """
        return (
            {"dataset": (*self.datasets, ALL)},
            {"relation": (*self.relations, *pools), "group": (*self.groups, *[ALL] * len(pools))},
            {"severity": (*map(str, self.severities), ALL)},
        )


def _ordered(
    codes: NDArray[np.int64], unique: Sequence[str], first: Sequence[str]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return distinct names, those of ``first`` in its order before the others, and each value's number among them.

    Args:
        codes: Number of each value in ``unique``.
        unique: Names in the order of their first values.
        first: Names, some of which may not be there.
    """
    there, before = set(unique), set(first)
    order = [name for name in first if name in there] + [name for name in unique if name not in before]
    number = {name: place for place, name in enumerate(order)}
    place = np.array([number[name] for name in unique], dtype=np.int64)
    return tuple(order), place[codes] if len(unique) else codes


def axes(records: Records, relation_order: Sequence[str] = ()) -> Axes:
    """Return how the follow-ups fall into cells; relations follow ``relation_order``."""
    import pandas as pd

    datasets, dataset = _ordered(*records.codes("dataset"), ())
    relations, relation = _ordered(*records.codes("relation"), relation_order)
    group_of = _last_group(records)
    severities, severity = np.unique(records.followups["severity"].to_numpy(dtype=np.int64), return_inverse=True)
    cluster_code, _ = records.codes("cluster")
    cluster = np.zeros(len(dataset), np.int64)
    counts: list[int] = []
    for number in range(len(datasets)):
        inside = dataset == number
        codes, _ = pd.factorize(cluster_code[inside])
        cluster[inside] = codes
        counts.append(int(codes.max()) + 1 if codes.size else 0)
    return Axes(
        datasets=datasets,
        relations=relations,
        groups=tuple(str(group_of[name]) for name in relations),
        severities=tuple(int(level) for level in severities),
        pooled=np.array([name != UNCHANGED for name in relations], dtype=bool),
        shape=(len(relations), len(severities)),
        dataset=dataset,
        cell=relation * len(severities) + severity.ravel(),
        cluster=cluster,
        seed=_seed_numbers(records, dataset),
        resamplers=tuple(Resampler(count, name) for name, count in zip(datasets, counts, strict=True)),
    )


def _last_group(records: Records) -> dict[str, str]:
    """Return each relation's group, of its last follow-up."""
    relation, names = records.codes("relation")
    group, groups = records.codes("group")
    last = np.zeros(len(names), np.int64)
    np.maximum.at(last, relation, np.arange(len(relation)))
    return {name: groups[group[last[number]]] for number, name in enumerate(names)}


def _seed_numbers(records: Records, dataset: NDArray[np.int64]) -> NDArray[np.int64]:
    numbers = dataset
    for name in ("seed_id", "item"):
        codes, unique = records.codes(name)
        _, numbers = np.unique(numbers * max(1, len(unique)) + codes, return_inverse=True)
    return numbers.astype(np.int64).ravel()
