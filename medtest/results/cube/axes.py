"""Axes of cases: their data set, their cell on the other axes, and the cluster that intervals resample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import CONTROLS, UNCHANGED
from medtest.core.deferred import pd
from medtest.results.cube.resampling import Resampler
from medtest.results.records.records_io import Records

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

ALL, OVERALL, OVERALL_CELLS = "all", "overall", "overall_cells"
"""Names of margins: data sets or severities together, relations together, and the mean of cells."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Data set, cell and cluster of N cases (or sequences, answers, comparisons).

    Attributes:
        shape: Lengths of the axes of a data set's cells.
        dataset: int64 N; index of the data set.
        cell: int64 N; index of the cell, the last axis fastest.
        cluster: int64 N; index of the cluster within its data set.
        resamplers: One for each data set; all resampling uses the same draws.
    """

    shape: tuple[int, ...]
    dataset: Integers
    cell: Integers
    cluster: Integers
    resamplers: tuple[Resampler, ...]

    @property
    def clusters(self) -> tuple[int, ...]:
        """Number of clusters of each data set."""
        return tuple(resampler.clusters for resampler in self.resamplers)

    def take(self, rows: NDArray[np.bool_] | Integers) -> Self:
        """Return the places of selected cases, in the given order."""
        return replace(self, dataset=self.dataset[rows], cell=self.cell[rows], cluster=self.cluster[rows])

    def with_cells(self, cell: Integers, shape: tuple[int, ...]) -> Places:
        """Return the places of the same cases in other cells.

        Args:
            cell: int64 N; index of the cell.
            shape: Lengths of the axes of a data set's cells.
        """
        return Places(shape=shape, dataset=self.dataset, cell=cell, cluster=self.cluster, resamplers=self.resamplers)

    def totals(self, values: ArrayLike, add: np.ufunc = np.add) -> Floats:
        """Return the sums of a value over the cells of each data set, and of all, (data sets + 1) × shape.

        Args:
            values: A number or truth value for each case.
            add: Pass ``np.maximum`` for maxima instead of sums; 0 without a case.
        """
        size = int(np.prod(self.shape))
        sums = np.zeros(len(self.resamplers) * size)
        add.at(sums, self.dataset * size + self.cell, np.asarray(values, np.float64))
        return with_all(sums.reshape(-1, *self.shape), 0, add)

    def sums(self, *values: ArrayLike) -> list[Floats]:
        """Return the sums of K values by cluster: for each data set float64 clusters × K × shape.

        Args:
            values: A number or truth value for each case.
        """
        size = int(np.prod(self.shape))
        numbers = [np.asarray(value, np.float64) for value in values]
        by_dataset = []
        for number, clusters in enumerate(self.clusters):
            inside = np.flatnonzero(self.dataset == number)
            flat = self.cluster[inside] * size + self.cell[inside]
            sums = [np.bincount(flat, weights=value[inside], minlength=clusters * size) for value in numbers]
            by_dataset.append(np.stack(sums, dtype=np.float64).reshape(len(sums), clusters, *self.shape).swapaxes(0, 1))
        return by_dataset

    def drawn(self, sums: Sequence[Floats]) -> list[Floats]:
        """Return sums of resampled clusters: for each data set float64 replicates × K × shape.

        Args:
            sums: Sums from :meth:`sums`.
        """
        return self.drawn_of_each([sums])[0]

    def drawn_of_each(self, sums: Sequence[Sequence[Floats]]) -> list[list[Floats]]:
        """Return :meth:`drawn` for each of several sums, in one pass over the draws."""
        by_dataset = [
            resampler.drawn_of_each([blocks[number] for blocks in sums])
            for number, resampler in enumerate(self.resamplers)
        ]
        return [[blocks[number] for blocks in by_dataset] for number in range(len(sums))]


def with_all(values: Floats, axis: int, add: np.ufunc = np.add) -> Floats:
    """Return values with their sum (or the reduction by ``add``) appended along an axis."""
    return np.concatenate([values, add.reduce(values, axis=axis, keepdims=True, initial=0)], axis=axis)


@dataclass(frozen=True, kw_only=True, eq=False)
class Axes(Places):
    """Axes of follow-ups: cells are relations × severities.

    Attributes:
        datasets: Names, in order.
        relations: Names, in order.
        groups: Group of each relation.
        severities: Levels, ascending.
        pooled: bool R; True if the relation counts in ``overall`` rows.
        seed: Index of each follow-up's source case, over all data sets.
    """

    datasets: tuple[str, ...]
    relations: tuple[str, ...]
    groups: tuple[str, ...]
    severities: tuple[int, ...]
    pooled: NDArray[np.bool_]
    seed: Integers

    @property
    def relation(self) -> Integers:
        """Index of each follow-up's relation."""
        return self.cell // len(self.severities)

    @property
    def severity(self) -> Integers:
        """Index of each follow-up's severity."""
        return self.cell % len(self.severities)

    def take(self, rows: NDArray[np.bool_] | Integers) -> Self:
        """Return the places of selected follow-ups, in the given order."""
        return replace(super().take(rows), seed=self.seed[rows])

    def names(self, *pools: str) -> tuple[dict[str, tuple[object, ...]], ...]:
        """Return the labels of a table's cells with margins: for each axis, a mapping from column to labels.

        Args:
            pools: Labels of the rows below the relations.
        """
        return (
            {"dataset": (*self.datasets, ALL)},
            {"relation": (*self.relations, *pools), "group": (*self.groups, *[ALL] * len(pools))},
            {"severity": (*map(str, self.severities), ALL)},
        )


def _ordered(
    codes: NDArray[np.int64], unique: Sequence[str], first: Sequence[str]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the distinct names, those of ``first`` leading in its order, and the index of each value among them.

    Args:
        codes: Index of each value in ``unique``.
        unique: Names in order of first occurrence.
        first: Names to put first; some may not occur.
    """
    present, leading = set(unique), set(first)
    order = [name for name in first if name in present] + [name for name in unique if name not in leading]
    number = {name: place for place, name in enumerate(order)}
    place = np.array([number[name] for name in unique], dtype=np.int64)
    return tuple(order), place[codes] if len(unique) else codes


def axes(records: Records, relation_order: Sequence[str] = ()) -> Axes:
    """Return the axes of the follow-ups; relations follow ``relation_order``."""
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
        pooled=np.array([name != UNCHANGED and group_of[name] != CONTROLS for name in relations], dtype=bool),
        shape=(len(relations), len(severities)),
        dataset=dataset,
        cell=relation * len(severities) + severity.ravel(),
        cluster=cluster,
        seed=_seed_numbers(records, dataset),
        resamplers=tuple(Resampler(count, name) for name, count in zip(datasets, counts, strict=True)),
    )


def _last_group(records: Records) -> dict[str, str]:
    """Return the group of each relation, taken from its last follow-up."""
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
