"""Which of two systems' answers flip less from frame to frame: a measure of :mod:`differences`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from medtest.results.cube.axes import Axes
from medtest.results.rates.differences import RELATION, Grouping, SystemCases
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.flips import AUTO, sequences_of
from medtest.tasks.classify.words import FLIPS


def flip_differences(sides: Mapping[str, Records], place: Axes) -> Iterator[tuple[Grouping, tuple[SystemCases, ...]]]:
    """Yield the comparisons of frames of every system, by type; nothing where one has no sequences.

    Args:
        sides: Records of each system's common cases.
        place: Their axes.
    """
    found = {name: sequences_of(one, place) for name, one in sides.items()}
    there = {name: one for name, one in found.items() if one is not None}
    if len(there) < len(sides):
        return
    first = next(iter(there.values()))
    flips = []
    for name, one in there.items():
        value, known = one.changes(AUTO)
        size = one.sizes[:, None] if one.multi else 1.0
        whole = np.asarray(known * size, np.float64).ravel()
        flips.append(SystemCases(name=name, part=np.rint(value * size).ravel(), whole=whole))
    place, repeated = first.place, first.rows.shape[1] - 1
    yield Grouping.of(FLIPS, RELATION, place.relations, place.relation, place, repeated), tuple(flips)
