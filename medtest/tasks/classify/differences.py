"""Differences in flips between frames of two systems: a measure of :mod:`differences`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from medtest.results.cube.axes import Axes
from medtest.results.rates.differences import RELATION, Grouping, SystemCases
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.flips import AUTO, sequences_of
from medtest.tasks.classify.words import FLIPS


def flip_differences(sides: Mapping[str, Records], place: Axes) -> Iterator[tuple[Grouping, tuple[SystemCases, ...]]]:
    """Yield the comparisons of frames of every system, by type; empty if one has no sequences.

    Args:
        sides: Records of each system's common cases.
        place: Axes of the records.
    """
    sequences = {name: sequences_of(records, place) for name, records in sides.items()}
    available = {name: frames for name, frames in sequences.items() if frames is not None}
    if len(available) < len(sides):
        return
    first = next(iter(available.values()))
    flips = []
    for name, frames in available.items():
        value, valid = frames.changes(AUTO)
        size = frames.sizes[:, None] if frames.multi else 1.0
        whole = np.asarray(valid * size, np.float64).ravel()
        flips.append(SystemCases(name=name, part=np.rint(value * size).ravel(), whole=whole))
    place, repeated = first.place, first.rows.shape[1] - 1
    yield Grouping.of(FLIPS, RELATION, place.relations, place.relation, place, repeated), tuple(flips)
