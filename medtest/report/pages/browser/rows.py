"""Rows of the browser: follow-ups of one system, or of several side by side, with what each system answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from medtest.core.records import ADDRESS, ANSWER, text_in
from medtest.report.pages.material import Material
from medtest.results.rates.images import NO_VIOLATION, VIOLATION, CaseLosses
from medtest.results.records.records_io import Records, read_table
from medtest.runner.records.answers import THUMBNAILS, AnswerStore
from medtest.runner.records.thumbnails import DRAWN, MARKS, of_record

_CHUNK = 1024
"""Number of cases read at a time."""
_SEED = ("dataset", "seed_id", "item")
_HASHES = ("source_sha256", "followup_sha256", ANSWER)
Record = Mapping[str, Any]


class Side:
    """Follow-ups of one system.

    Args:
        material: Its material.
        records: Its records, with hashes of images.
        name: Its name on the page.
    """

    def __init__(self, material: Material, records: Records, name: str) -> None:
        self.material, self.records, self.name = material, records, name
        self.ranked = CaseLosses(records, material.wanted.primary)
        self.store = None if material.wanted.images == "none" else AnswerStore(material.folder, THUMBNAILS)

    @cached_property
    def addresses(self) -> NDArray[np.object_]:
        """Addresses of the follow-ups."""
        return self.records.texts(ADDRESS)

    @cached_property
    def place(self) -> dict[str, int]:
        """Index of each follow-up by its address."""
        return {str(address): index for index, address in enumerate(self.addresses)}

    @cached_property
    def _sources(self) -> dict[tuple[str, ...], int]:
        frame = self.records.sources
        keys = zip(*(frame[name].astype(str) for name in _SEED), strict=True)
        return {key: index for index, key in enumerate(keys)}

    def read(self, rows: Sequence[int]) -> list[tuple[Record, Record | None]]:
        """Return the records of follow-ups and of their sources, with the names of stored answers."""
        followups = self.records.followups.iloc[list(rows)].to_dict("records")
        places = [self._sources.get(tuple(str(record[name]) for name in _SEED)) for record in followups]
        numbers = sorted({place for place in places if place is not None})
        frame = self.records.sources.iloc[numbers]
        sources = dict(zip(numbers, frame.to_dict("records"), strict=True))
        pairs = [(record, None if at is None else sources[at]) for record, at in zip(followups, places, strict=True)]
        names = self._names_of([str(record[ADDRESS]) for pair in pairs for record in pair if record is not None])
        for record in (*followups, *sources.values()):
            record.update({**dict.fromkeys(_HASHES, ""), **names.get(str(record[ADDRESS]), {})})
        return [(_plain(record), None if source is None else _plain(source)) for record, source in pairs]

    def _names_of(self, addresses: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the hashes of images and answers by address; tables do not need them, so they are read apart."""
        table = self._hashes
        chosen = table.filter(pc.is_in(table[ADDRESS], value_set=pa.array(addresses, pa.string())))
        return {row.pop(ADDRESS): {name: text or "" for name, text in row.items()} for row in chosen.to_pylist()}

    @cached_property
    def _hashes(self) -> pa.Table:
        return read_table(self.material.folder, [ADDRESS, *_HASHES])


def _plain(record: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a record's values as Python objects, None for NaN."""
    values = {str(name): value.item() if isinstance(value, np.generic) else value for name, value in record.items()}
    return {name: None if value != value else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class BrowsedCase:
    """One follow-up of every side.

    Attributes:
        rows: Its index in each side.
        records: Its record and its source's in each side.
    """

    rows: tuple[int, ...]
    records: tuple[tuple[Record, Record | None], ...]

    def named(self, side: int) -> dict[str, str]:
        """Return the names of a side's thumbnails by what they show."""
        record, source = self.records[side]
        names = {"picture": text_in(record, "followup_sha256"), "source": text_in(record, "source_sha256")}
        names |= {"marks": of_record(MARKS, record), "drawn": of_record(DRAWN, record)}
        if source is not None:
            names |= {"source_marks": of_record(MARKS, source), "source_drawn": of_record(DRAWN, source)}
        return names


def chosen_cases(sides: Sequence[Side]) -> list[tuple[int, ...]]:
    """Return the cases of a page in the order in which they are taken: their index in each side.

    Of one side these are all its follow-ups, those that a section of the page links to first; of several, those that
    some of them violate and others do not.
    """
    first, *others = sides
    if not others:
        linked = first.material.tables.slices.addresses
        ahead = [first.place[address] for address in linked if address in first.place]
        return [(int(row),) for row in dict.fromkeys([*ahead, *first.ranked.order.tolist()])]
    cases = []
    for row in first.ranked.order.tolist():
        rows = (row, *(side.place.get(str(first.addresses[row]), -1) for side in others))
        if min(rows) < 0:
            continue
        verdicts = {side.ranked.verdict[at] for side, at in zip(sides, rows, strict=True)}
        if verdicts == {VIOLATION, NO_VIOLATION}:
            cases.append(rows)

    def largest(rows: tuple[int, ...]) -> float:
        losses = [side.ranked.loss[at] for side, at in zip(sides, rows, strict=True)]
        return -float(np.nanmax(losses)) if np.isfinite(losses).any() else 0.0

    return sorted(cases, key=largest)


def read_cases(sides: Sequence[Side], cases: Sequence[tuple[int, ...]]) -> Iterator[list[BrowsedCase]]:
    """Yield cases with their records, some at a time."""
    for start in range(0, len(cases), _CHUNK):
        part = cases[start : start + _CHUNK]
        columns = [side.read([rows[number] for rows in part]) for number, side in enumerate(sides)]
        yield [BrowsedCase(rows, records) for rows, records in zip(part, zip(*columns, strict=True), strict=True)]
