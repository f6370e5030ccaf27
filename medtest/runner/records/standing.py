"""State of records judged by an earlier revision of the oracle: which can be judged again, and from what.

There are three kinds of cases. Without an answer, no oracle is involved and only the revision in the record changes.
With its answer and that to its source stored in a sufficient form, a case is judged again. Otherwise its system is
asked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from medtest.core.records import ANSWER
from medtest.runner.records.answers import AnswerStore, Names
from medtest.runner.records.judged_by import JudgedBy
from medtest.runner.records.shards import Code, RowGroup, Stamp, newest, read_in_order

_OLD = (ANSWER, "verdict", "elapsed_ms")
_ANSWERED = ("PASS", "FAIL")


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordStanding:
    """State of a folder's records under today's oracle; bool arrays, one value per place in the plan.

    Attributes:
        stale: Records to be judged again.
        judge: Of these, cases whose answers are stored and that do not run again with their source.
        ask: Of these, cases whose system must be asked again.
        names: S64, names of their answers, b"" for none.
    """

    stale: NDArray[np.bool_]
    judge: NDArray[np.bool_]
    ask: NDArray[np.bool_]
    names: Names

    @property
    def restate(self) -> NDArray[np.bool_]:
        """Cases for which only the recorded revision changes: they have no answer, or run again with their source."""
        return self.stale & ~self.judge & ~self.ask


def standing(
    folder: Path, parts: Sequence[RowGroup], judged: JudgedBy, *, chosen: NDArray[np.bool_], row: int, maps: bool
) -> RecordStanding | None:
    """Return the state of a folder's records; None if nothing must be judged again.

    Args:
        folder: The system's folder.
        parts: Its row groups, from the oldest to the newest.
        judged: Present judgement.
        chosen: bool, True at the places in the plan whose cases this invocation must execute.
        row: Cases of one question of one seed, the source first.
        maps: True if any score needs the answers' maps.
    """
    total = len(chosen)
    stale, codes = np.zeros(total, np.bool_), np.full(total, Code.NONE, np.uint8)
    for part in parts:
        stale[part.places] = False if part.stale is None else part.stale
        codes[part.places] = part.codes
    if not stale.any():
        return None
    names = np.zeros(total, "S64")
    answered = np.zeros(total, np.bool_)
    for part in parts:
        names[part.places], answered[part.places] = _answers_in(part, judged.columns)
    store = AnswerStore(folder)
    stored = store.holds(names, maps=maps)
    answered |= names != b""
    source = np.arange(total) // row * row
    whole = stored[source] | ~answered[source]
    fits = answered & stored & whole
    judge = stale & fits
    # cases that failed with their source run again with it, unless the source is judged again
    judge &= ~(chosen & (codes == Code.SOURCE_FAILED) & ~judge[source])
    return RecordStanding(stale=stale, judge=judge, ask=stale & answered & ~fits, names=names)


def _answers_in(part: RowGroup, scores: Collection[str]) -> tuple[Names, NDArray[np.bool_]]:
    """Return the names of a row group's answers, and which of its cases were answered."""
    with pq.ParquetFile(part.path) as file:
        present = [name for name in (*_OLD, *scores) if name in file.schema_arrow.names]
        table = file.read_row_group(part.group, columns=present, use_threads=False)
    names = np.zeros(table.num_rows, "S64")
    if ANSWER in present:
        names = np.array(table[ANSWER].fill_null("").to_pylist(), dtype="S64")
    verdict = table["verdict"]
    answered = pc.is_in(verdict, value_set=pa.array(_ANSWERED))
    was_asked = pc.and_(pc.is_valid(table["elapsed_ms"]), pc.not_equal(verdict, "ERROR"))
    for evidence in (was_asked, *(pc.is_valid(table[name]) for name in scores if name in present)):
        answered = pc.or_(answered, evidence)
    return names, answered.combine_chunks().to_numpy(zero_copy_only=False).astype(np.bool_)


def old_records(
    parts: list[RowGroup], schema: pa.Schema, stamp: Stamp, requested: NDArray[np.bool_]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield existing records in the order of the plan, with today's columns.

    Args:
        parts: Row groups from the oldest to the newest; the newest row of a case counts.
        schema: Schema of the records.
        stamp: Metadata of the folder's files; verdicts under another criterion stay unchanged.
        requested: bool, the places.
    """
    order = newest(parts)
    places = np.concatenate([part.places for part in parts])[order] if parts else np.empty(0, np.int64)
    chosen = requested[places]
    place_iterator = iter(places[chosen].tolist())
    for table in read_in_order(parts, schema, stamp, order[chosen]):
        for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
            yield next(place_iterator), values
