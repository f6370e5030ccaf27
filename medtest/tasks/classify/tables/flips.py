"""Flip probability over sequences of small perturbations: ``tables/flip_probability.csv``.

Equation 5 of M. Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack"
(Medical Image Analysis, 2021), after D. Hendrycks and T. Dietterich (ICLR 2019, section 4.2): over r sequences of n
frames, FP = 1 / (r (n - 1)) Σ_i Σ_j>1 [C(x_j) ≠ C(x_ref)]. The reference frame follows a rule:

- ``previous``: the frame before.
- ``first``: frame 0.
- ``auto``: frame 0 for noise, whose frames do not follow from one another, else the frame before. The paper's rule.
- ``released``: what the paper's code computes. With one label an image that is ``auto``; with several labels it
  compares with frame 0 for every type and does not divide by n - 1, so that its values lie in [0, n - 1] and beside no
  other's.

With one label an image a comparison is 0 or 1; with several it is the share of the labels whose decision (above 0.5)
changed, so that FP lies in [0, 1]. A comparison drops out where either of its frames has no answer (ERROR, SKIP); the
denominator is the comparisons that are left. Neither truth nor source is needed.

A type is a relation with frames. Severity ``all`` pools a type's sequences, data set ``all`` its data sets; relation
``overall`` is the mean of the types. Intervals: see :mod:`medtest.results.cube.rates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import Classes, Verdict
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, OVERALL, Axes, axes, with_all
from medtest.results.cube.rates import MEAN, margins, rates, table
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.decisions import Bools, Floats, classes_of, decisions_of

if TYPE_CHECKING:
    import pandas as pd

PREVIOUS, FIRST, AUTO, RELEASED = "previous", "first", "auto", "released"
RULES = (AUTO, PREVIOUS, FIRST, RELEASED)
NOISE = "noise"
"""Group of the relations whose frames are compared with frame 0 under ``auto``."""

COLUMNS = columns_in(__file__, "flip_probability")
FRAME_COLUMNS = columns_in(__file__, "flip_frames")
_KEYS = ("dataset", "relation", "severity", "rule")


@dataclass(frozen=True, kw_only=True, eq=False)
class Sequences:
    """S sequences of up to F frames over C classes.

    Attributes:
        place: Where the sequences stand.
        classes: The classes; ``multi`` where several may be true at once.
        rows: int64 S×F; the follow-up of each frame, -1 where the records have none.
        answer: bool S×F×C; what was decided.
        answered: bool S×F.
        error: bool S×F; the frame is an ERROR.
        skipped: bool S×F; the frame was executed, has no answer and is no ERROR.
        sizes: float64 S; number of classes.
        right: bool S×F; the answer is the expected one.
        labelled: bool S×F; there is an expected one.
    """

    place: Axes
    classes: Classes
    rows: NDArray[np.int64]
    answer: Bools
    answered: Bools
    error: Bools
    skipped: Bools
    sizes: Floats
    right: Bools
    labelled: Bools

    @property
    def multi(self) -> bool:
        """Whether several classes may be true at once."""
        return self.classes.multi

    @cached_property
    def noise(self) -> Bools:
        """Whether each sequence is of noise."""
        groups = np.array([group == NOISE for group in self.place.groups], dtype=bool)
        return groups[self.place.relation]

    def changes(self, rule: str) -> tuple[Floats, Bools]:
        """Return S×(F-1): how much each frame's answer differs from its reference's, and whether that is known.

        Args:
            rule: One of :data:`RULES`; ``released`` is what its reference frames are, not what it is divided by.
        """
        before = self._against(slice(0, -1))
        if rule == PREVIOUS:
            return before
        start = self._against(slice(0, 1))
        if rule == FIRST or (rule == RELEASED and self.multi):
            return start
        chosen = self.noise[:, None]
        return np.where(chosen, start[0], before[0]), np.where(chosen, start[1], before[1])

    def _against(self, reference: slice) -> tuple[Floats, Bools]:
        differs = self.answer[:, 1:] != self.answer[:, reference]
        known = self.answered[:, 1:] & self.answered[:, reference]
        value = differs.sum(2) / self.sizes[:, None] if self.multi else differs.any(2).astype(np.float64)
        return np.where(known, value, 0.0), known


def sequences_of(records: Records, place: Axes | None = None) -> Sequences | None:
    """Return the sequences of records of a classifier, or None where no relation has frames.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
    """
    frames = records.followups
    if frames.empty or not (frames["frame"].to_numpy() > 0).any():
        return None
    found = axes(records) if place is None else place
    frame = frames["frame"].to_numpy(dtype=np.int64)
    has_frames = np.zeros(len(found.relations), bool)
    has_frames[found.relation[frame > 0]] = True
    rows = np.flatnonzero(has_frames[found.relation])
    number, first = _numbered(
        found.seed[rows], found.cell[rows], frames["repeat"].to_numpy(dtype=np.int64)[rows], first_of=rows
    )
    grid = np.full((len(first), int(frame[rows].max()) + 1), -1, np.int64)
    grid[number, frame[rows]] = rows
    there = grid >= 0
    decided = decisions_of(frames, classes_of(records), records.classes)
    error = (frames["verdict"].astype(str) == Verdict.ERROR.value).to_numpy(dtype=bool)
    return Sequences(
        place=found.take(first),
        classes=decided.classes,
        rows=grid,
        answer=decided.answer[grid] & there[..., None],
        answered=decided.answered[grid] & there,
        error=error[grid] & there,
        skipped=~decided.answered[grid] & ~error[grid] & there,
        sizes=decided.sizes[first],
        right=decided.right[grid] & there,
        labelled=(decided.labelled & decided.answered)[grid] & there,
    )


def _numbered(*keys: NDArray[np.int64], first_of: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sequence of each follow-up, in the order of the records, and the first follow-up of each."""
    _, first, inverse = np.unique(np.stack(keys, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse.ravel()], first_of[first[order]]


def flip_table(
    records: Records,
    place: Axes | None = None,
    *,
    rules: Sequence[str] = RULES,
    reference: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the table of flip probabilities, with exactly :data:`COLUMNS`.

    ``frames`` is n, ``sequences`` the sequences with a comparison left, ``errors`` and ``skipped`` count frames. ``fp``
    and its interval are fractions. Rows of ``released`` are there where it says something of its own, with several
    labels, or where it is asked for alone.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
        rules: Which rules.
        reference: This function's table of the reference system, for ``rfp`` = FP / FP of the reference; empty where
            there is none, or where the reference never flips.
    """
    import pandas as pd

    found = sequences_of(records, place)
    if found is None:
        return pd.DataFrame(columns=list(COLUMNS))
    wanted = [rule for rule in rules if rule != RELEASED or found.multi or len(rules) == 1]
    return with_reference(pd.concat([_one_rule(found, rule) for rule in wanted], ignore_index=True), reference)


def with_reference(flips: pd.DataFrame, reference: pd.DataFrame | None) -> pd.DataFrame:
    """Return a table of flip probabilities with ``rfp`` relative to another's.

    Args:
        flips: What :func:`flip_table` gave.
        reference: The reference system's table; None empties ``rfp``.
    """
    made = flips.drop(columns="rfp", errors="ignore")
    if reference is None or reference.empty or made.empty:
        return made.assign(rfp=np.nan)[list(COLUMNS)]
    beside = reference[[*_KEYS, "fp"]].rename(columns={"fp": "_reference"})
    joined = made.merge(beside, on=list(_KEYS), how="left", sort=False)
    whole = joined["_reference"].to_numpy(dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(whole > 0, joined["fp"].to_numpy(dtype=np.float64) / whole, np.nan)
    return joined.assign(rfp=np.round(ratio, 6))[list(COLUMNS)]


def _one_rule(found: Sequences, rule: str) -> pd.DataFrame:
    place = found.place
    value, known = found.changes(rule)
    scale = _not_divided_by(found) if rule == RELEASED and found.multi else None
    made = rates(place, value.sum(1), known.sum(1), pools=(MEAN,), scale=scale)
    frames = (found.rows >= 0).sum(1)
    columns = {
        "rule": rule,
        "frames": margins(place.totals(frames, np.maximum), add=np.maximum).astype(np.int64),
        "sequences": _counted(found, known.any(1)),
        "fp": np.round(made.rate, 6),
        "ci_low": np.round(made.low, 6),
        "ci_high": np.round(made.high, 6),
        "errors": _counted(found, found.error.sum(1)),
        "skipped": _counted(found, found.skipped.sum(1)),
    }
    return table(place.names(OVERALL), columns, _counted(found, frames) > 0)


def _counted(found: Sequences, values: ArrayLike) -> NDArray[np.int64]:
    """Return sums over the cells with all their margins; ``overall`` is the sum over the relations."""
    return margins(found.place.totals(values)).astype(np.int64)


def _not_divided_by(found: Sequences) -> Floats:
    """Return n - 1 of every relation, by which the released code does not divide."""
    frames = found.place.totals((found.rows >= 0).sum(1), np.maximum)[-1].max(-1)
    return np.asarray(np.maximum(frames, 1.0) - 1.0)


def frame_table(records: Records, place: Axes | None = None, *, rule: str = AUTO) -> pd.DataFrame:
    """Return how often each frame's answer differs from its reference's, with :data:`FRAME_COLUMNS`.

    ``fp`` of frame 0 is empty; ``accuracy`` is over the answered frames of labelled seeds.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
        rule: Reference frame.
    """
    import pandas as pd

    found = sequences_of(records, place)
    if found is None:
        return pd.DataFrame(columns=list(FRAME_COLUMNS))
    value, known = found.changes(rule)
    rows: list[pd.DataFrame] = []
    for frame in range(found.rows.shape[1]):
        none = np.zeros(len(found.rows))
        flips, whole = (value[:, frame - 1], known[:, frame - 1]) if frame else (none, none)
        rows.append(_one_frame(found, frame, flips, whole).assign(rule=rule))
    made = pd.concat(rows, ignore_index=True)
    codes = [pd.factorize(made[name])[0] for name in ("severity", "relation", "dataset")]
    return made.iloc[np.lexsort((made["frame"].to_numpy(), *codes))].reset_index(drop=True)[list(FRAME_COLUMNS)]


def _one_frame(found: Sequences, frame: int, flips: ArrayLike, whole: ArrayLike) -> pd.DataFrame:
    place, labelled = found.place, found.labelled[:, frame]
    made = rates(place, flips, whole)
    counted = [place.totals(one) for one in (found.right[:, frame] & labelled, labelled, found.rows[:, frame] >= 0)]
    right, answers, there = (with_all(one, -1) for one in counted)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = right / answers
    columns = {
        "frame": frame,
        "comparisons": made.whole.astype(np.int64),
        "fp": np.round(made.rate, 6),
        "ci_low": np.round(made.low, 6),
        "ci_high": np.round(made.high, 6),
        "accuracy": np.round(accuracy, 6),
    }
    return table(place.names(), columns, there > 0)


def overall(records: Records) -> float | None:
    """Return the flip probability over all types, severities and data sets (rule ``auto``); None without sequences."""
    found = flip_table(records, rules=(AUTO,))
    rows = found.loc[(found["relation"] == OVERALL).to_numpy(dtype=bool)]
    for name in ("dataset", "severity"):
        pooled = (rows[name].astype(str) == ALL).to_numpy(dtype=bool)
        rows = rows.loc[pooled] if pooled.any() else rows
    return None if rows.empty else float(rows["fp"].iloc[0])
