"""Checks on a single attack: repeatability of answers, usable gradients, saved pixels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.probes import NO_GRADIENT
from medtest.core.tasks.results import Graded
from medtest.results.attacks.checking.found import (
    FOLLOWED,
    MOST_PROBE,
    MOST_REPEAT,
    MOST_ZERO,
    MOSTLY,
    PROBE,
    REPEATS,
    WITHIN,
    ZERO,
    CheckFinding,
)
from medtest.results.attacks.settings import L_INF, STRONGEST, WHITE, Setting
from medtest.results.cube.axes import Axes
from medtest.results.records.records_io import Records

Integers: TypeAlias = NDArray[np.int64]


def of_sources(records: Records, dataset: str) -> Iterator[CheckFinding]:
    """Yield checks that answers to the sources repeat and that the system's probe reproduces them."""
    sources = records.sources.loc[(records.sources["dataset"].astype(str) == dataset).to_numpy(dtype=bool)]
    for check, column, bound, bad in (
        (
            REPEATS,
            "repeat_gap",
            MOST_REPEAT,
            "the system answers differently when asked again about the same image, so an attack follows one answer "
            "but another is judged",
        ),
        (
            PROBE,
            "probe_gap",
            MOST_PROBE,
            "the probe differs from the system, so attacks may look weaker than they are",
        ),
    ):
        gaps = sources[column].to_numpy(dtype=np.float64, na_value=np.nan) if column in sources.columns else np.zeros(0)
        gaps = gaps[~np.isnan(gaps)]
        if not gaps.size:
            yield CheckFinding.unchecked(check, "the records hold no measurement", {"bound": bound})
            continue
        largest = float(gaps.max())
        words = f"largest difference in probability on {gaps.size:,} source images: {largest:.2g}"
        explanation = f", more than {bound:g}: {bad}"
        yield CheckFinding.of(check, largest <= bound, words, {"value": largest, "bound": bound}, explanation)


def of_setting(
    records: Records, setting: Setting, place: Axes, dataset: int, graded: Graded | None
) -> Iterator[CheckFinding]:
    """Yield the checks that need only this setting's follow-ups."""
    rows = setting.inside(place, dataset)
    yield from _followed(records, setting, rows)
    if setting.role == WHITE:
        shares = records.floats("zero_gradient")[rows]
        failed = np.ones(len(rows), bool) if graded is None else graded.right[rows] > 0
        failed = failed[~np.isnan(shares)]
        shares = shares[~np.isnan(shares)]
        if shares.size:
            stuck = int(((shares > MOSTLY) & failed).sum())
            value = stuck / shares.size
            words = f"in {stuck:,} of {shares.size:,} cases most gradients were exactly zero and decisions stayed right"
            explanation = ": the attack had no gradient to follow there, so this is no evidence of robustness"
            yield CheckFinding.of(ZERO, value <= MOST_ZERO, words, {"value": value, "bound": MOST_ZERO}, explanation)
    norm = "linf" if setting.norm == L_INF else "l2"
    far, scale = records.floats(norm)[rows], records.floats("scale")[rows]
    measured = ~np.isnan(far) & ~np.isnan(scale)
    if measured.any():
        reach = np.floor(scale[measured]) if norm == L_INF else scale[measured]
        beyond = far[measured] - reach
        worst = int(beyond.argmax())
        value, bound = float(far[measured][worst]), float(reach[worst])
        passes = float(beyond.max()) <= (0.0 if norm == L_INF else 1e-6)
        words = f"the largest change of a saved image is {value:g} levels; {bound:g} are allowed"
        yield CheckFinding.of(WITHIN, passes, words, {"value": value, "bound": bound})


def _followed(records: Records, setting: Setting, rows: Integers) -> Iterator[CheckFinding]:
    """Yield the check that the network's gradients can be followed, where the records show it."""
    columns = [
        [text or "" for text in records.texts(name)[rows]]
        for name in ("attack_note", "reason")
        if name in records.followups.columns
    ]
    texts = [" ".join(parts) for parts in zip(*columns, strict=True)]
    for mark, words in (("not finite", "are not finite"), (NO_GRADIENT, "do not reach the pixels")):
        count = sum("gradient" in text and mark in text for text in texts)
        if count:
            instead = "Square and a surrogate of the scores are used instead"
            instead = instead if setting.part == STRONGEST else "read the strongest row"
            why = f"in {count:,} of {len(rows):,} cases gradients {words}: {instead}"
            yield CheckFinding.of(FOLLOWED, False, why, {"value": count / len(rows), "bound": 0.0})
            return
    if setting.role == WHITE:
        yield CheckFinding.of(FOLLOWED, True, "gradients are finite and reach the pixels", {"value": 0.0, "bound": 0.0})
