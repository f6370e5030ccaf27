"""Flip probability over sequences of small perturbations: ``tables/flip_probability.csv``.

Equation 5 of M. Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack" (Medical
Image Analysis, 2021), after D. Hendrycks and T. Dietterich (ICLR 2019, section 4.2): over r sequences of n frames, FP =
1 / (r (n - 1)) Σ_i Σ_j>1 [C(x_j) ≠ C(x_ref)]. The reference frame follows a rule:

- ``previous``: the frame before.
- ``first``: always frame 0.
- ``auto``: frame 0 for noise, whose frames are independent, else the frame before. The paper's rule.
- ``released``: the rule of the paper's code. For exclusive classes it is ``auto``; with several labels it compares with
    frame 0 for every type and does not divide by n - 1, so that its values are in [0, n - 1] and not comparable.

For exclusive classes a comparison is 0 or 1; with several labels it is the share of labels whose decision (above 0.5)
changed, so that FP is in [0, 1]. A comparison is omitted if either frame has no answer (ERROR, SKIP); the denominator
is the number of remaining comparisons. Neither truth nor source is needed.

A type is a relation with frames. Severity ``all`` pools a type's sequences, data set ``all`` its data sets; relation
``overall`` is the mean of the types. Intervals: see :mod:`medtest.results.cube.rates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import Classes, Verdict
from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, OVERALL, Axes, axes, with_all
from medtest.results.cube.rates import MEAN, margins, rates, table
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.decisions import Bools, Floats, classes_of, decisions_of

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
        place: Axes of the sequences.
        classes: The classes; ``multi`` if several may be true at once.
        rows: int64 S×F; index of the follow-up of each frame, -1 if it is not recorded.
        answer: bool S×F×C; the decisions.
        answered: bool S×F.
        error: bool S×F; True if the frame is an ERROR.
        skipped: bool S×F; True if the frame was executed, has no answer and is not an ERROR.
        sizes: float64 S; number of classes.
        right: bool S×F; True if the answer is the expected one.
        labelled: bool S×F; True if there is an expected answer.
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
        """True if several classes may be true at once."""
        return self.classes.multi

    @cached_property
    def noise(self) -> Bools:
        """Mask of the noise sequences."""
        groups = np.array([group == NOISE for group in self.place.groups], dtype=bool)
        return groups[self.place.relation]

    def changes(self, rule: str) -> tuple[Floats, Bools]:
        """Return each frame's difference from its reference, S×(F-1), and a mask of the frames where it is known.

        Args:
            rule: One of :data:`RULES`; ``released`` affects only the reference frames here, not the divisor.
        """
        previous = self._against(slice(0, -1))
        if rule == PREVIOUS:
            return previous
        start = self._against(slice(0, 1))
        if rule == FIRST or (rule == RELEASED and self.multi):
            return start
        is_noise = self.noise[:, None]
        return np.where(is_noise, start[0], previous[0]), np.where(is_noise, start[1], previous[1])

    def _against(self, reference: slice) -> tuple[Floats, Bools]:
        differs = self.answer[:, 1:] != self.answer[:, reference]
        comparable = self.answered[:, 1:] & self.answered[:, reference]
        value = differs.sum(2) / self.sizes[:, None] if self.multi else differs.any(2).astype(np.float64)
        return np.where(comparable, value, 0.0), comparable


def sequences_of(records: Records, place: Axes | None = None) -> Sequences | None:
    """Return the sequences in records of a classifier, or None if no relation has frames.

    Args:
        records: Records of one system.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
    """
    frames = records.followups
    if frames.empty or not (frames["frame"].to_numpy() > 0).any():
        return None
    cells = axes(records) if place is None else place
    frame = frames["frame"].to_numpy(dtype=np.int64)
    has_frames = np.zeros(len(cells.relations), bool)
    has_frames[cells.relation[frame > 0]] = True
    rows = np.flatnonzero(has_frames[cells.relation])
    number, first = _numbered(
        cells.seed[rows], cells.cell[rows], frames["repeat"].to_numpy(dtype=np.int64)[rows], first_of=rows
    )
    grid = np.full((len(first), int(frame[rows].max()) + 1), -1, np.int64)
    grid[number, frame[rows]] = rows
    present = grid >= 0
    decided = decisions_of(frames, classes_of(records), records.classes)
    error = (frames["verdict"].astype(str) == Verdict.ERROR.value).to_numpy(dtype=bool)
    return Sequences(
        place=cells.take(first),
        classes=decided.classes,
        rows=grid,
        answer=decided.answer[grid] & present[..., None],
        answered=decided.answered[grid] & present,
        error=error[grid] & present,
        skipped=~decided.answered[grid] & ~error[grid] & present,
        sizes=decided.sizes[first],
        right=decided.right[grid] & present,
        labelled=(decided.labelled & decided.answered)[grid] & present,
    )


def _numbered(*keys: NDArray[np.int64], first_of: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sequence index of each follow-up, in the order of the records, and the first follow-up of each."""
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

    ``frames`` is n, ``sequences`` the number of sequences with a comparison, ``errors`` and ``skipped`` count frames.
    ``fp`` and its interval are fractions. Rows of ``released`` are included if they differ from the others, i.e. with
    several labels, or if only this rule is requested.

    Args:
        records: Records of one system.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
        rules: Rules to include.
        reference: This function's table for the reference system, for ``rfp`` = FP / FP of the reference; empty without
            one, or if the reference never flips.
    """
    sequences = sequences_of(records, place)
    if sequences is None:
        return pd.DataFrame(columns=list(COLUMNS))
    included = [rule for rule in rules if rule != RELEASED or sequences.multi or len(rules) == 1]
    return with_reference(pd.concat([_one_rule(sequences, rule) for rule in included], ignore_index=True), reference)


def with_reference(flips: pd.DataFrame, reference: pd.DataFrame | None) -> pd.DataFrame:
    """Return a table of flip probabilities with ``rfp`` relative to another's.

    Args:
        flips: Table from :func:`flip_table`.
        reference: Table of the reference system; None empties ``rfp``.
    """
    frame = flips.drop(columns="rfp", errors="ignore")
    if reference is None or reference.empty or frame.empty:
        return frame.assign(rfp=np.nan)[list(COLUMNS)]
    beside = reference[[*_KEYS, "fp"]].rename(columns={"fp": "_reference"})
    joined = frame.merge(beside, on=list(_KEYS), how="left", sort=False)
    reference_fp = joined["_reference"].to_numpy(dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(reference_fp > 0, joined["fp"].to_numpy(dtype=np.float64) / reference_fp, np.nan)
    return joined.assign(rfp=np.round(ratio, 6))[list(COLUMNS)]


def _one_rule(sequences: Sequences, rule: str) -> pd.DataFrame:
    place = sequences.place
    value, compared = sequences.changes(rule)
    scale = _not_divided_by(sequences) if rule == RELEASED and sequences.multi else None
    probabilities = rates(place, value.sum(1), compared.sum(1), pools=(MEAN,), scale=scale)
    frames = (sequences.rows >= 0).sum(1)
    columns = {
        "rule": rule,
        "frames": margins(place.totals(frames, np.maximum), add=np.maximum).astype(np.int64),
        "sequences": _counted(sequences, compared.any(1)),
        "fp": np.round(probabilities.rate, 6),
        "ci_low": np.round(probabilities.low, 6),
        "ci_high": np.round(probabilities.high, 6),
        "errors": _counted(sequences, sequences.error.sum(1)),
        "skipped": _counted(sequences, sequences.skipped.sum(1)),
    }
    return table(place.names(OVERALL), columns, _counted(sequences, frames) > 0)


def _counted(sequences: Sequences, values: ArrayLike) -> NDArray[np.int64]:
    """Return sums over the cells with all their margins; ``overall`` is the sum over the relations."""
    return margins(sequences.place.totals(values)).astype(np.int64)


def _not_divided_by(sequences: Sequences) -> Floats:
    """Return n - 1 of every relation, by which the released code does not divide."""
    frames = sequences.place.totals((sequences.rows >= 0).sum(1), np.maximum)[-1].max(-1)
    return np.asarray(np.maximum(frames, 1.0) - 1.0)


def frame_table(records: Records, place: Axes | None = None) -> pd.DataFrame:
    """Return the share of differing answers at each frame, with :data:`FRAME_COLUMNS`.

    ``fp`` of frame 0 is empty; ``accuracy`` is over the answered frames of labelled seeds.

    Args:
        records: Records of one system.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
    """
    sequences = sequences_of(records, place)
    if sequences is None:
        return pd.DataFrame(columns=list(FRAME_COLUMNS))
    value, compared = sequences.changes(AUTO)
    rows: list[pd.DataFrame] = []
    for frame in range(sequences.rows.shape[1]):
        zeros = np.zeros(len(sequences.rows))
        flips, whole = (value[:, frame - 1], compared[:, frame - 1]) if frame else (zeros, zeros)
        rows.append(_one_frame(sequences, frame, flips, whole).assign(rule=AUTO))
    frame_rows = pd.concat(rows, ignore_index=True)
    codes = [pd.factorize(frame_rows[name])[0] for name in ("severity", "relation", "dataset")]
    return frame_rows.iloc[np.lexsort((frame_rows["frame"].to_numpy(), *codes))].reset_index(drop=True)[
        list(FRAME_COLUMNS)
    ]


def _one_frame(sequences: Sequences, frame: int, flips: ArrayLike, whole: ArrayLike) -> pd.DataFrame:
    place, labelled = sequences.place, sequences.labelled[:, frame]
    probabilities = rates(place, flips, whole)
    totals = [
        place.totals(values)
        for values in (sequences.right[:, frame] & labelled, labelled, sequences.rows[:, frame] >= 0)
    ]
    right, answers, present = (with_all(values, -1) for values in totals)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = right / answers
    columns = {
        "frame": frame,
        "comparisons": probabilities.whole.astype(np.int64),
        "fp": np.round(probabilities.rate, 6),
        "ci_low": np.round(probabilities.low, 6),
        "ci_high": np.round(probabilities.high, 6),
        "accuracy": np.round(accuracy, 6),
    }
    return table(place.names(), columns, present > 0)


def overall(records: Records) -> float | None:
    """Return the flip probability over all types, severities and data sets (rule ``auto``); None without sequences."""
    flips = flip_table(records, rules=(AUTO,))
    rows = flips.loc[(flips["relation"] == OVERALL).to_numpy(dtype=bool)]
    for name in ("dataset", "severity"):
        pooled = (rows[name].astype(str) == ALL).to_numpy(dtype=bool)
        rows = rows.loc[pooled] if pooled.any() else rows
    return None if rows.empty else float(rows["fp"].iloc[0])
