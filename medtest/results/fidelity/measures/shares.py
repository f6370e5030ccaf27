"""Shares of cases with intervals from :mod:`medtest.results.cube`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from medtest.results.cube.axes import Places
from medtest.results.cube.rates import rates
from medtest.results.cube.resampling import Resampler, group_numbers
from medtest.results.fidelity.cases import DrawnCases
from medtest.results.fidelity.features import Integers


@dataclass(frozen=True, slots=True)
class PictureShare:
    """Share of cases with its interval.

    Attributes:
        rate: In [0, 1].
        low: Lower end of the 95 % interval.
        high: Upper end.
        method: Method of the interval.
        clusters: Number of clusters of the cases.
    """

    rate: float
    low: float
    high: float
    method: str
    clusters: int


def places_of(cases: DrawnCases, rows: Integers, cell: Integers, shape: tuple[int, int]) -> Places:
    """Return the axes of selected cases.

    Args:
        cases: All cases.
        rows: int64 n; indices of the selected cases.
        cell: int64 n; the cell of each.
        shape: Lengths of the cells' axes.
    """
    sets, clusters = cases.texts("dataset")[rows], cases.clusters[rows]
    dataset, count = group_numbers(sets.astype(str))
    number = np.zeros(len(rows), np.int64)
    resamplers = []
    for index in range(count):
        inside = dataset == index
        number[inside], size = group_numbers(clusters[inside].astype(str))
        resamplers.append(Resampler(size, str(sets[inside][0])))
    return Places(shape=shape, dataset=dataset, cell=cell, cluster=number, resamplers=tuple(resamplers))


def shares_of(cases: DrawnCases, cells: Sequence[tuple[Integers, ArrayLike]]) -> list[PictureShare]:
    """Return means of values in [0, 1] over sets of cases, which may overlap; all are resampled together.

    Args:
        cases: All cases.
        cells: For each set the indices of its cases, int64 n with n at least 1, and n values.
    """
    if not cells:
        return []
    rows = np.concatenate([rows for rows, _ in cells])
    values = np.concatenate([np.asarray(values, np.float64) for _, values in cells])
    cell = np.repeat(np.arange(len(cells)), [len(rows) for rows, _ in cells])
    place = places_of(cases, rows, cell, (len(cells), 1))
    means = rates(place, values, np.ones(len(rows)), independent=True)
    return [
        PictureShare(
            float(means.rate[-1, at, -1]),
            float(means.low[-1, at, -1]),
            float(means.high[-1, at, -1]),
            str(means.method[-1, at, -1]),
            int(means.clusters[-1, at, -1]),
        )
        for at in range(len(cells))
    ]
