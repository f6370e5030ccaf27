"""Which sequences a person would want to look at: those that flip most, of every type."""

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
        frame: Its number.
        label: What the system answered, ``|`` between several labels; None where it gave no answer.
        verdict: Its verdict.
        probability: The probability of a single answered label; None where there is none.
        flipped: Whether it differs from its reference frame.
        right: Whether it is as expected; None where nothing is expected.
    """

    frame: int
    label: str | None
    verdict: str
    probability: float | None
    flipped: bool
    right: bool | None


@dataclass(frozen=True, kw_only=True)
class FilmSequence:
    """A sequence worth a film strip.

    Attributes:
        dataset: Data set, and likewise the following, as in the records.
        seed_id: Id of the seed as the records show it.
        relation: Type.
        severity: Difficulty.
        repeat: Repeat.
        expected: Expected labels, ``|`` between them; None where there are none.
        flips: Sum of the changes.
        comparisons: Comparisons between two answers.
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
        """Return the address of a frame as the report and ``medtest replay`` write it."""
        return address_text(self.dataset, self.seed_id, self.relation, self.severity, frame, self.repeat)


def worst_sequences(
    records: Records, place: Axes | None = None, *, most: int = 8, rule: str = AUTO
) -> tuple[FilmSequence, ...]:
    """Return the sequences that flip most: one of each type in turn, another seed each time where there is one.

    Sequences that never flip are left out.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
        most: How many.
        rule: Reference frame, see :mod:`medtest.tasks.classify.tables.flips`.
    """
    found = sequences_of(records, place)
    if found is None:
        return ()
    value, known = found.changes(rule)
    flips = value.sum(1)
    relation, seed = found.place.relation, found.place.seed
    order = np.argsort(-flips, kind="stable")
    queues = [[int(n) for n in order if relation[n] == r and flips[n] > 0] for r in dict.fromkeys(relation[order])]
    chosen: list[int] = []
    seen: set[int] = set()
    while len(chosen) < most and any(queues):
        for queue in queues:
            if queue and len(chosen) < most:
                worst = flips[queue[0]]
                fresh = next((n for n in queue if flips[n] == worst and int(seed[n]) not in seen), queue[0])
                queue.remove(fresh)
                chosen.append(fresh)
                seen.add(int(seed[fresh]))
    return tuple(_film(records, found, number, value[number], known[number]) for number in chosen)


def _film(records: Records, found: Sequences, number: int, value: Floats, known: Bools) -> FilmSequence:
    rows = [int(row) for row in found.rows[number] if row >= 0]
    taken = records.followups.iloc[rows]
    given: list[dict[Any, Any]] = taken.to_dict("records")
    scores = probabilities_of(taken, found.classes)
    frames = []
    for place, record in enumerate(given):
        frame = int(record["frame"])
        label = str(record[LABEL]) if found.answered[number, frame] else None
        own = scores[place, found.classes.names.index(label)] if label in found.classes.names else np.nan
        frames.append(
            StripFrame(
                frame=frame,
                label=label,
                verdict=str(record["verdict"]),
                probability=None if np.isnan(own) else float(own),
                flipped=bool(frame and known[frame - 1] and value[frame - 1] > 0),
                right=bool(found.right[number, frame]) if found.labelled[number, frame] else None,
            )
        )
    first = given[0]
    expected = first.get(EXPECTED)
    return FilmSequence(
        dataset=str(first["dataset"]),
        seed_id=str(first["seed_id"]),
        relation=str(first["relation"]),
        severity=int(first["severity"]),
        repeat=int(first["repeat"]),
        expected=expected if isinstance(expected, str) else None,
        flips=float(value.sum()),
        comparisons=int(known.sum()),
        frames=tuple(frames),
    )
