"""Sequences for film strips: those with most flips, of every type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from medtest.core.address import address_text
from medtest.results.cube.axes import Axes
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables.decisions import EXPECTED, LABEL, Bools, Floats, probabilities_of
from medtest.tasks.classify.tables.flips import AUTO, Sequences, sequences_of


@dataclass(frozen=True, kw_only=True)
class StripFrame:
    """One frame of a film strip.

    Attributes:
        frame: Index of the frame.
        label: Answer of the system, ``|`` between several labels; None without an answer.
        verdict: Its verdict.
        probability: Probability of a single answered label, or None.
        flipped: True if it differs from its reference frame.
        right: True if it is as expected; None without an expected label.
    """

    frame: int
    label: str | None
    verdict: str
    probability: float | None
    flipped: bool
    right: bool | None


@dataclass(frozen=True, kw_only=True)
class FilmSequence:
    """Sequence for a film strip.

    Attributes:
        dataset: Data set, as in the records.
        seed_id: Id of the seed in the records.
        relation: Type.
        severity: Difficulty.
        repeat: Repeat.
        expected: Expected labels, ``|`` between them; None without any.
        flips: Sum of the changes.
        comparisons: Number of comparisons between two answers.
        frames: Its frames, in order.
    """

    dataset: str
    seed_id: str
    relation: str
    severity: int
    repeat: int
    expected: str | None
    flips: float
    comparisons: int
    frames: tuple[StripFrame, ...]

    def address(self, frame: int) -> str:
        """Return the address of a frame in the form of the report and ``medtest replay``."""
        return address_text(self.dataset, self.seed_id, self.relation, self.severity, frame, self.repeat)


def worst_sequences(records: Records, place: Axes | None = None, *, most: int = 8) -> tuple[FilmSequence, ...]:
    """Return the sequences with most flips: one of each type in turn, preferring different seeds.

    Sequences without a flip are left out.

    Args:
        records: Records of one system.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
        most: Largest number of sequences.
    """
    sequences = sequences_of(records, place)
    if sequences is None:
        return ()
    value, compared = sequences.changes(AUTO)
    flips = value.sum(1)
    relation, seed = sequences.place.relation, sequences.place.seed
    order = np.argsort(-flips, kind="stable")
    queues = [[int(n) for n in order if relation[n] == r and flips[n] > 0] for r in dict.fromkeys(relation[order])]
    selected: list[int] = []
    used_seeds: set[int] = set()
    while len(selected) < most and any(queues):
        for queue in queues:
            if queue and len(selected) < most:
                worst = flips[queue[0]]
                fresh = next((n for n in queue if flips[n] == worst and int(seed[n]) not in used_seeds), queue[0])
                queue.remove(fresh)
                selected.append(fresh)
                used_seeds.add(int(seed[fresh]))
    return tuple(_film(records, sequences, number, value[number], compared[number]) for number in selected)


def _film(records: Records, sequences: Sequences, number: int, value: Floats, compared: Bools) -> FilmSequence:
    rows = [int(row) for row in sequences.rows[number] if row >= 0]
    cases = records.followups.iloc[rows]
    case_records: list[dict[Any, Any]] = cases.to_dict("records")
    scores = probabilities_of(cases, sequences.classes)
    frames = []
    for place, record in enumerate(case_records):
        frame = int(record["frame"])
        label = str(record[LABEL]) if sequences.answered[number, frame] else None
        probability = (
            scores[place, sequences.classes.names.index(label)] if label in sequences.classes.names else np.nan
        )
        frames.append(
            StripFrame(
                frame=frame,
                label=label,
                verdict=str(record["verdict"]),
                probability=None if np.isnan(probability) else float(probability),
                flipped=bool(frame and compared[frame - 1] and value[frame - 1] > 0),
                right=bool(sequences.right[number, frame]) if sequences.labelled[number, frame] else None,
            )
        )
    first = case_records[0]
    expected = first.get(EXPECTED)
    return FilmSequence(
        dataset=str(first["dataset"]),
        seed_id=str(first["seed_id"]),
        relation=str(first["relation"]),
        severity=int(first["severity"]),
        repeat=int(first["repeat"]),
        expected=expected if isinstance(expected, str) else None,
        flips=float(value.sum()),
        comparisons=int(compared.sum()),
        frames=tuple(frames),
    )
