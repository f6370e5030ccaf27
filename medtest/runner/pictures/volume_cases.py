"""Choice of volumes of a series to draw with every system's answer: least and greatest scale of uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from medtest.core.cases import SOURCE, UNCHANGED, PreparedSeed
from medtest.core.records import KEY_COLUMNS
from medtest.core.tasks.base import task_of
from medtest.runner.folder import RECORDS
from medtest.runner.pictures.volume_figures import LEAST, MOST, MOST_ANSWERS, draw_volume_figures
from medtest.runner.pool.messages import VolumePicture
from medtest.runner.records.case_set import CaseSet
from medtest.runner.records.ledger import CasePlaces
from medtest.runner.units.made_case import MadeCase, SystemAnswer
from medtest.systems.base import System
from medtest.systems.controls import Control

_MOST_RELATIONS = 3
"""Limit on relations: every picture asks every system once more, and a suite may have many relations."""


def extreme_cases(folder: Path, places: CasePlaces, considered: CaseSet | None = None) -> list[tuple[str, str, int]]:
    """Return (relation, ``least`` or ``greatest``, place in the plan) of the cases of extreme scale.

    Args:
        folder: A system's folder with merged records.
        places: Places of records in the plan.
        considered: The cases to consider; None for all.
    """
    table = pq.read_table(folder / RECORDS, columns=[*KEY_COLUMNS, "scale"], use_threads=False)
    if considered is not None:
        table = table.take(considered.rows(table))
    columns = {name: table[name].to_pylist() for name in KEY_COLUMNS}
    scale = table["scale"].to_numpy(zero_copy_only=False).astype(np.float64)
    place = places.find(columns)
    relation = np.array(columns["relation"], dtype=object)
    cases: list[tuple[str, str, int]] = []
    names = [name for name in dict.fromkeys(columns["relation"]) if name not in (SOURCE, UNCHANGED)]
    for name in names[:_MOST_RELATIONS]:
        rows = np.flatnonzero((relation == name) & ~np.isnan(scale) & (place >= 0))
        if rows.size == 0:
            continue
        rows = rows[np.argsort(place[rows], kind="stable")]  # of equal scales the first in the plan
        lowest, highest = rows[np.argmin(scale[rows])], rows[np.argmax(scale[rows])]
        cases.append((name, LEAST, int(place[lowest])))
        if scale[highest] > scale[lowest]:
            cases.append((name, MOST, int(place[highest])))
    return cases


def is_volume(seed: PreparedSeed) -> bool:
    """Return True if a seed can be drawn as a volume: three spatial axes, and a true region."""
    return seed.spec.axes == "zyx" and seed.mask is not None


def draw_volume(
    seed: PreparedSeed,
    case: MadeCase,
    systems: Sequence[System],
    answers: Sequence[SystemAnswer],
    picture: VolumePicture,
) -> None:
    """Draw one volume with the answers of the systems.

    Args:
        seed: Seed that provides truth and range.
        case: Input of the systems.
        systems: The systems.
        answers: Their answers, in the same order.
        picture: Target of the picture.
    """
    if case.follow is None or seed.mask is None:
        return
    drawing = task_of(seed.kind).drawing
    regions = {
        system.record_name: region
        for system, answer in zip(systems, answers, strict=True)
        if answer.output is not None and (region := drawing.region(answer.output)) is not None
    }
    folder, spacing = Path(picture.folder), seed.spec.spacing or (1.0, 1.0, 1.0)
    title = f"{picture.title} = {case.follow.scale:.3g}"
    window = (seed.spec.low, seed.spec.high)
    draw_volume_figures(
        folder, picture.stem, case.follow.image, seed.mask, regions, spacing, window=window, title=title
    )


def shown_systems(systems: Sequence[System]) -> list[System]:
    """Return the systems whose answers are drawn: the first few, controls only if there is nothing else."""
    real = [system for system in systems if not isinstance(system, Control)]
    return (real or list(systems))[:MOST_ANSWERS]
