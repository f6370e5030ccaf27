"""Shares of cases with intervals from :mod:`medtest.results.cube`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from medtest.results.cube.axes import Places
from medtest.results.cube.rates import decimals, rates
from medtest.results.cube.resampling import clusters_within
from medtest.results.fidelity.cases import DrawnCases
from medtest.results.fidelity.features import Integers


def places_of(cases: DrawnCases, rows: Integers, cell: Integers, shape: tuple[int, int]) -> Places:
    """Return the axes of selected cases.

    Args:
        cases: All cases.
        rows: int64 n; indices of the selected cases.
        cell: int64 n; the cell of each.
        shape: Lengths of the cells' axes.
    """
    names, dataset = np.unique(cases.texts("dataset")[rows].astype(str), return_inverse=True)
    cluster, resamplers = clusters_within(dataset, names.tolist(), cases.clusters[rows].astype(str))
    return Places(shape=shape, dataset=dataset, cell=cell, cluster=cluster, resamplers=resamplers)


def shares_of(cases: DrawnCases, cells: Sequence[tuple[Integers, ArrayLike]]) -> list[dict[str, Any]]:
    """Return means of values in [0, 1] over sets of cases, which may overlap; all are resampled together.

    Each is a part of a table's row: ``percent``, ``ci_low``, ``ci_high``, ``ci_method``, and the numbers of
    ``pictures`` and ``clusters``.

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
    percent, low, high = (decimals(100 * side[-1, :, -1]).tolist() for side in (means.rate, means.low, means.high))
    return [
        {
            "percent": percent[at],
            "ci_low": low[at],
            "ci_high": high[at],
            "ci_method": str(means.method[-1, at, -1]),
            "pictures": len(rows),
            "clusters": int(means.clusters[-1, at, -1]),
        }
        for at, (rows, _) in enumerate(cells)
    ]
