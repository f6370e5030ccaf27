"""Ledger of finished and unfinished cases of one system; the only writer of its folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from medtest.core.cases import SOURCE, SeedRef
from medtest.runner.folder import RECORDS, make_folder, utc_now
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.answers import KeptAnswer
from medtest.runner.records.judged_by import JudgedBy
from medtest.runner.records.rows import COLUMN
from medtest.runner.records.seals import text_mark
from medtest.runner.records.shard_scan import scan
from medtest.runner.records.shards import (
    RECORDS_CSV,
    Code,
    RowGroup,
    ShardWriter,
    Stamp,
    code_of,
    merge,
)
from medtest.runner.records.standing import RecordStanding, old_records, standing
from medtest.runner.reporting.outcome import Limits
from medtest.suite.model import Criterion
from medtest.suite.plan import Plan

_VERDICT, _REASON = COLUMN["verdict"], COLUMN["reason_code"]
_AGAIN = (Code.ERROR, Code.SOURCE_FAILED, Code.WAITS, Code.NONE)


class CasePlaces:
    """Places of records in the plan: unit × cases of the longest unit + case.

    Args:
        plan: The plan.
        names: Display of ids in records.
    """

    def __init__(self, plan: Plan, names: ShownNames) -> None:
        self.width, self.row = plan.cases_per_seed, plan.row
        self.total = self.width * len(plan.refs)
        self._units = {
            (ref.dataset, names.seed_id(ref.dataset, ref.seed_id)): index for index, ref in enumerate(plan.refs)
        }
        self._items = [
            None if ref.items == ("",) else {item: number for number, item in enumerate(ref.items)} for ref in plan.refs
        ]
        self._cases = {(SOURCE, 0, 0, 0): 0}
        self._cases |= {
            (step.relation, step.severity, step.frame, step.repeat): index
            for index, step in enumerate(plan.shape, start=1)
        }

    def find(self, columns: Mapping[str, Sequence[Any]]) -> NDArray[np.int64]:
        """Return the places of rows, specified by key columns; -1 for a row that belongs to no case."""
        seeds = zip(columns["dataset"], columns["seed_id"], strict=True)
        cases = zip(columns["relation"], columns["severity"], columns["frame"], columns["repeat"], strict=True)
        places = []
        for seed, case, item in zip(seeds, cases, columns["item"], strict=True):
            unit, index = self._units.get(seed), self._cases.get(case)
            number = None if unit is None else self._question(unit, item)
            if unit is None or index is None or number is None:
                places.append(-1)
            else:
                places.append(unit * self.width + number * self.row + index)
        return np.array(places, dtype=np.int64)

    def _question(self, unit: int, item: str) -> int | None:
        items = self._items[unit]
        if items is None:
            return None if item else 0
        return items.get(item)

    def seed(self, shown_key: tuple[str, str]) -> int | None:
        """Return the number of the unit with this displayed data set and id."""
        return self._units.get(shown_key)


def seeds_twice(refs: Sequence[SeedRef]) -> list[tuple[str, str]]:
    """Return (data set, id) pairs that occur more than once."""
    return [pair for pair, count in Counter((ref.dataset, ref.seed_id) for ref in refs).items() if count > 1]


class RecordLedger:
    """Records of one system.

    Args:
        folder: Its folder, which is created.
        schema: Schema of the records.
        digest: The run's digest.
        primary: The suite's criterion for verdicts. Records judged by another are judged again.
        places: Places of records.
        chosen: bool, the places that this invocation must execute.
        limits: Limits that close shards.
        judging: Further settings that affect verdicts: :meth:`medtest.core.oracles.base.Oracle.judging`.
        judged: Present judgement; None if records are judged from themselves.
        maps: True if any score needs the maps of answers.

    Attributes:
        standing: State of records judged by an earlier revision of the oracle; None if there are none.
        chosen: Number of cases that this invocation must have finished.
        to_do: Number of them that were unfinished when it began.
        left: Number of them that are unfinished now.
        executed: Cases run by this invocation.
        reused_from: Time when the newest earlier record was written.
        set_aside: Earlier files that were unusable.
    """

    def __init__(
        self,
        *,
        folder: Path,
        schema: pa.Schema,
        digest: str,
        primary: Criterion,
        places: CasePlaces,
        chosen: NDArray[np.bool_],
        limits: Limits,
        judging: Mapping[str, Any] | None = None,
        judged: JudgedBy | None = None,
        maps: bool = False,
    ) -> None:
        make_folder(folder)
        self.folder = folder
        self.places = places
        self._schema = schema
        self._primary = json.dumps({**asdict(primary), **(judging or {})}, sort_keys=True)
        earlier = scan(folder, schema, digest, places.find, judged)
        self._old: list[RowGroup] = earlier.parts
        self.reused_from = earlier.written
        self.set_aside = earlier.set_aside
        self._csv = earlier.csv
        self._codes = np.full(places.total, Code.NONE, dtype=np.uint8)
        for part in earlier.parts:
            self._codes[part.places] = part.codes
        self.standing: RecordStanding | None = None
        if judged is not None and not judged.from_records:
            self.standing = standing(folder, earlier.parts, judged, chosen=chosen, row=places.row, maps=maps)
        again = np.isin(self._codes, _AGAIN)
        if self.standing is not None:
            again = (again & ~self.standing.judge) | self.standing.ask
        self._todo = (chosen & again).astype(np.uint8)
        self._chosen = chosen
        self._width = places.width
        self._executed = np.zeros(places.total, dtype=np.bool_)
        self.executed = 0
        self.chosen = int(np.count_nonzero(chosen))
        self.to_do = self.left = int(self._todo.sum())
        self._stamp = Stamp(digest=digest, primary=self._primary, judged=judged)
        self._writer = ShardWriter(
            folder,
            schema,
            self._stamp,
            seconds=limits.shard_seconds,
            rows=limits.shard_rows,
        )

    @property
    def needs_reader(self) -> bool:
        """True if a case is unfinished, or a record must be read or judged again."""
        return bool(self.to_do) or any(part.primary != self._primary or not part.fits for part in self._old)

    def todo(self, unit: int) -> bytes:
        """Return one byte per case of a unit, 1 if it must still be run."""
        return self._todo[unit * self._width : (unit + 1) * self._width].tobytes()

    def units_to_do(self) -> NDArray[np.bool_]:
        """Return which units have unfinished cases."""
        return np.asarray(self._todo.reshape(-1, self._width).any(axis=1), dtype=np.bool_)

    def old_records(self, requested: NDArray[np.bool_]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield records of earlier invocations, in the order of the plan.

        Args:
            requested: bool, the places.
        """
        yield from old_records(self._old, self._schema, self._stamp, requested)

    def ask_again(self, places: Iterable[int]) -> None:
        """Run cases again whose answers cannot be judged, if this invocation must execute them."""
        for place in places:
            if self._chosen[place] and not self._todo[place] and self._codes[place] != Code.NONE:
                self._todo[place] = 1
                self.to_do += 1
                self.left += 1

    def restate(self, place: int, row: tuple[Any, ...]) -> None:
        """Store a record that was judged again without running its case."""
        code = code_of(row[_VERDICT], row[_REASON])
        self._codes[place] = code
        self._writer.add(place, code, row)

    def take(self, unit: int, case: int, row: tuple[Any, ...], stored: Iterable[KeptAnswer] = ()) -> None:
        """Store a finished case, its answer and thumbnails; a row of a case that was not requested is dropped."""
        place = unit * self._width + case
        if not self._todo[place]:
            return
        code = code_of(row[_VERDICT], row[_REASON])
        self._todo[place] = 0
        self._codes[place] = code
        self._executed[place] = True
        self.executed += 1
        self.left -= 1
        self._writer.add(place, code, row, stored)

    def tick(self) -> None:
        """Close the open shard when its time limit is reached."""
        self._writer.tick()

    def flush(self) -> None:
        """Close the open shard."""
        self._writer.flush()

    def counts(self) -> NDArray[np.int64]:
        """Return the number of the folder's cases by :class:`~medtest.runner.records.shards.Code`."""
        return np.bincount(self._codes, minlength=len(Code))

    def chosen_counts(self) -> NDArray[np.int64]:
        """Return the same for the cases that this invocation must execute, except those to be run again."""
        settled = self._chosen & (self._todo == 0)
        return np.bincount(self._codes[settled], minlength=len(Code))

    @property
    def outside(self) -> bool:
        """True if the folder holds records of cases that this invocation did not request."""
        return bool(np.any((self._codes != Code.NONE) & ~self._chosen))

    def finished(self) -> NDArray[np.bool_]:
        """Return the places whose case has a record."""
        return np.asarray(self._codes != Code.NONE, dtype=np.bool_)

    @property
    def reused(self) -> int:
        """Number of valid records made by earlier invocations."""
        return int(np.count_nonzero((self._codes != Code.NONE) & ~self._executed))

    def rows(self, columns: list[str]) -> Iterator[dict[str, Any]]:
        """Yield all records, the newest of a case last.

        Args:
            columns: Columns to read.
        """
        for part in self._old + self._writer.parts:
            with pq.ParquetFile(part.path) as file:
                yield from file.read_row_group(part.group, columns=columns, use_threads=False).to_pylist()

    def merge(
        self, judge: Callable[[pa.Table], pa.Table], *, system: str = "", rewrite: bool = False
    ) -> NDArray[np.int64]:
        """Write the merged records if there is anything new.

        Args:
            judge: Recomputes the verdicts of a table under the suite's criterion.
            system: New name of the system in every record; "" to keep names.
            rewrite: Write them in any case, because the name changes.

        Returns:
            The result of :meth:`counts`.
        """
        self._writer.flush()
        parts = self._old + self._writer.parts
        records = self.folder / RECORDS
        whole = all(part.path == records and part.primary == self._primary and part.fits for part in parts)
        text = self.folder / RECORDS_CSV
        if records.exists() and whole and not rewrite and text_mark(text) == self._csv:
            return self.counts()
        counts = merge(
            self.folder,
            self._schema,
            self._stamp,
            parts,
            written=utc_now() if self._writer.parts else self.reused_from,
            judge=judge,
            system=system,
        )
        counts[Code.NONE] = self._codes.size - int(counts.sum())
        return counts
