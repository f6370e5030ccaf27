"""Records on disk: complete shards during a run, one sorted file at its end.

A shard is written under a draft name, synced, renamed into place, and its folder synced: it is complete or absent.
Shards of an earlier run are read by :mod:`medtest.runner.records.shard_scan`. At the end all shards are merged into
``records.parquet`` in the order of the plan, by streaming; of several rows of a case (an ERROR that was run again) the
newest counts.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from medtest.core.cases import ReasonCode
from medtest.core.recent import Recent
from medtest.runner.folder import RECORDS, output_problems, sync_folder, utc_now, writing
from medtest.runner.records.answers import FOLDER, THUMBNAILS, AnswerWriter, KeptAnswer
from medtest.runner.records.judged_by import JudgedBy
from medtest.runner.records.seals import CONTENT, CSV, JOINED, Seal, fitted, seal_of, text_mark
from medtest.runner.records.spreadsheets import table_for_csv

RECORDS_CSV = "records.csv"
SHARDS = "records"
DIGEST, PRIMARY, WRITTEN = b"medtest.digest", b"medtest.primary", b"medtest.written"
_CHUNK = 512
_MERGED = 2048
"""Rows per row group of the merged file: a writer keeps some 50 KiB of each until the end."""
_OPEN_PARTS = 3
_MOST_OPEN = 64
"""Row groups in memory while shards of several machines are joined; one takes 2 to 4 MiB."""
SHARD = re.compile(r"shard-(\d{8})\.parquet")

Key: TypeAlias = tuple[Any, ...]
Find: TypeAlias = Callable[[Mapping[str, list[Any]]], NDArray[np.int64]]
"""Function from key columns to places in the plan; -1 for a row that belongs to no case."""


class Code(IntEnum):
    """State of a case, in one byte."""

    PASS = 0
    FAIL = 1
    ERROR = 2
    SKIP = 3
    SOURCE_FAILED = 4
    """SKIP because the source case is an ERROR."""
    NONE = 5
    """No record yet."""
    WAITS = 6
    """SKIP because a search waits for an earlier query that is an ERROR."""


def code_of(verdict: str, reason_code: str) -> Code:
    """Return the code of a record."""
    if reason_code == ReasonCode.SEARCH_WAITS:
        return Code.WAITS
    return Code.SOURCE_FAILED if reason_code == ReasonCode.SOURCE_FAILED else Code[verdict]


def codes_of(table: pa.Table) -> NDArray[np.uint8]:
    """Return the codes of a table of records.

    Raises:
        KeyError: A verdict is invalid.
    """
    pairs = zip(table["verdict"].to_pylist(), table["reason_code"].to_pylist(), strict=True)
    return np.array([code_of(*pair) for pair in pairs], dtype=np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Metadata of every file of records.

    Attributes:
        digest: Digest of its run.
        primary: The criterion of its verdicts, as JSON text.
        judged: Present judgement; None if records are taken unchanged.
    """

    digest: str
    primary: str
    judged: JudgedBy | None = None

    def on(self, schema: pa.Schema, written: str) -> pa.Schema:
        """Return the schema with the stamp in its metadata."""
        return schema.with_metadata(
            {DIGEST: self.digest.encode(), PRIMARY: self.primary.encode(), WRITTEN: written.encode()}
        )


@dataclass(slots=True)
class RowGroup:
    """Row group of a file.

    Attributes:
        path: The file.
        group: Number of the row group.
        places: int64 N, each row's place in the plan.
        codes: uint8 N, the state of each row's case.
        primary: The criterion of its verdicts.
        fits: True if the file has the present columns of records.
        stale: bool N, True for rows that an oracle must judge again; None if there are none.
    """

    path: Path
    group: int
    places: NDArray[np.int64]
    codes: NDArray[np.uint8]
    primary: str
    fits: bool = True
    stale: NDArray[np.bool_] | None = None


class ShardWriter:
    """Writer that collects rows and closes shards.

    Args:
        folder: The system's folder.
        schema: Schema of the records.
        stamp: Metadata of its files.
        seconds: Longest time a row waits.
        rows: Maximum rows of a shard.

    Attributes:
        parts: The written row groups, oldest first.
    """

    def __init__(self, folder: Path, schema: pa.Schema, stamp: Stamp, *, seconds: float, rows: int) -> None:
        self._folder = folder / SHARDS
        self._schema = schema
        self._stamp = stamp
        self._seconds = seconds
        self._most = rows
        self._rows: list[tuple[Any, ...]] = []
        self._places: list[int] = []
        self._codes: list[int] = []
        self._since = 0.0
        self._packs = {below: AnswerWriter(folder, below) for below in (FOLDER, THUMBNAILS)}
        numbers = [int(m[1]) for p in self._folder.glob("shard-*") if (m := SHARD.match(p.name))]
        self._number = max(numbers, default=0)
        self.parts: list[RowGroup] = []

    def add(self, place: int, code: Code, row: tuple[Any, ...], stored: Iterable[KeptAnswer] = ()) -> None:
        """Add one row, its stored answer and its thumbnails."""
        if not self._rows:
            self._since = time.monotonic()
        for item in stored:
            self._packs[item.below].add(item)
        self._rows.append(row)
        self._places.append(place)
        self._codes.append(code)

    def tick(self) -> None:
        """Close the shard when its time limit is reached."""
        is_due = time.monotonic() - self._since >= self._seconds
        if self._rows and (is_due or len(self._rows) >= self._most or any(p.full for p in self._packs.values())):
            self.flush()

    def flush(self) -> None:
        """Close the shard now, if it has rows.

        Raises:
            OutputProblem: It cannot be written.
        """
        if not self._rows:
            return
        self._packs[FOLDER].flush()
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(column, type=field.type) for column, field in zip(columns, self._schema, strict=True)]
        now = utc_now()
        table = pa.Table.from_arrays(arrays, schema=self._stamp.on(self._schema, now))
        groups = (table.slice(start, _CHUNK) for start in range(0, table.num_rows, _CHUNK))
        seal = seal_of(groups, self._stamp.digest, self._stamp.primary, now)
        table = table.replace_schema_metadata({**table.schema.metadata, CONTENT: seal})
        path = self._folder / f"shard-{self._number + 1:08d}.parquet"
        with writing(path) as file:
            pq.write_table(table, file, compression="zstd", write_page_checksum=True, row_group_size=_CHUNK)
        self._number += 1
        places = np.array(self._places, dtype=np.int64)
        codes = np.array(self._codes, dtype=np.uint8)
        for group, start in enumerate(range(0, len(places), _CHUNK)):
            rows_of_group = slice(start, start + _CHUNK)
            self.parts.append(
                RowGroup(
                    path=path,
                    group=group,
                    places=places[rows_of_group],
                    codes=codes[rows_of_group],
                    primary=self._stamp.primary,
                )
            )
        self._rows, self._places, self._codes = [], [], []
        # No record names its thumbnails, so that a disk that fills up loses these first.
        self._packs[THUMBNAILS].flush()


def columns_there(folder: Path) -> frozenset[str]:
    """Return the columns found in any of a folder's record files; unreadable files are ignored."""
    columns: set[str] = set()
    for path in (folder / RECORDS, *sorted((folder / SHARDS).glob("shard-*.parquet"))):
        try:
            columns |= set(pq.read_schema(path).names) if path.is_file() else set()
        except (pa.ArrowException, OSError):
            continue
    return frozenset(columns)


def judging_in(folder: Path) -> dict[str, Any]:
    """Return criterion, oracle's settings and reader of a folder's newest records; empty if no file states them."""
    newest_written, judging = "", dict[str, Any]()
    for path in (folder / RECORDS, *sorted((folder / SHARDS).glob("shard-*.parquet"))):
        try:
            metadata = (pq.read_schema(path).metadata or {}) if path.is_file() else {}
            content = json.loads(metadata.get(PRIMARY, b"null"))
        except (pa.ArrowException, OSError, ValueError):
            continue
        written = metadata.get(WRITTEN, b"").decode(errors="replace")
        if isinstance(content, dict) and written >= newest_written:
            newest_written, judging = written, content
    return judging


def merge(
    folder: Path,
    schema: pa.Schema,
    stamp: Stamp,
    parts: list[RowGroup],
    *,
    written: str,
    judge: Callable[[pa.Table], pa.Table],
    system: str = "",
    joins: int = 0,
    mark: bytes = b"",
) -> NDArray[np.int64]:
    """Write ``records.parquet`` and ``records.csv`` from all parts, sorted by plan, and remove the shards.

    In ``records.csv`` an apostrophe precedes texts that a spreadsheet would take for formulas.

    Args:
        folder: The system's folder.
        schema: Schema of the records.
        stamp: Metadata of the file; its criterion is that of every verdict in it.
        parts: Row groups from the oldest to the newest; the newest row of a case counts.
        written: Time when its newest row was written.
        judge: Recomputes the verdicts of a table, for parts under another criterion.
        system: New name of the system in every record; "" to keep names.
        joins: Number of other folders that the parts belong to, with interleaved seeds; these folders are not changed.
        mark: Metadata about those folders, under :data:`JOINED`.

    Returns:
        Number of records by :class:`Code`.

    Raises:
        OutputProblem: It cannot be written.
    """
    order = newest(parts)
    counts = np.zeros(len(Code), dtype=np.int64)
    reader = _Reader(parts, stamp, judge, schema, keep=max(_OPEN_PARTS, min(joins + 1, _MOST_OPEN)))
    full, seal = stamp.on(schema, written), Seal(stamp.digest, stamp.primary, written)
    with (
        writing(folder / RECORDS) as parquet_file,
        writing(folder / RECORDS_CSV) as csv_file,
        pq.ParquetWriter(parquet_file, full, compression="zstd", write_page_checksum=True) as parquet,
    ):
        with pa_csv.CSVWriter(csv_file, full) as text:
            for table in reader.tables(order):
                rows = (_with_system_name(table, system) if system else table).replace_schema_metadata(full.metadata)
                parquet.write_table(rows, row_group_size=_MERGED)
                seal.add(rows)
                text.write_table(table_for_csv(rows))
                counts += np.bincount(codes_of(rows), minlength=len(Code))
        csv_file.flush()
        seals = {CONTENT: seal.value(), CSV: text_mark(Path(csv_file.name))}
        parquet.add_key_value_metadata({**seals, JOINED: mark} if mark else seals)
    for path in sorted({part.path for part in parts} - {folder / RECORDS}) if not joins else ():
        with output_problems(path):
            path.unlink(missing_ok=True)
    sync_folder(folder / SHARDS)
    return counts


def _with_system_name(table: pa.Table, system: str) -> pa.Table:
    place = table.schema.get_field_index("system")
    return table.set_column(place, table.schema.field(place), pa.array([system] * len(table), pa.string()))


def newest(parts: list[RowGroup]) -> NDArray[np.int64]:
    """Return the newest row of every case, sorted by place; rows are counted through all parts from the oldest.

    Memory use is one number per case, for a plan of any length.
    """
    if not parts:
        return np.empty(0, dtype=np.int64)
    places = np.concatenate([part.places for part in parts])
    by_place: NDArray[np.int64] = np.argsort(places, kind="stable")
    places = places[by_place]
    newest: NDArray[np.int64] = by_place[np.append(places[1:] != places[:-1], True)]
    return newest


def read_in_order(
    parts: list[RowGroup], schema: pa.Schema, stamp: Stamp, order: NDArray[np.int64]
) -> Iterator[pa.Table]:
    """Yield unchanged rows of many row groups, with the columns of a schema.

    Args:
        parts: The row groups.
        schema: Schema of the records.
        stamp: Metadata of the folder's files.
        order: Row numbers, counted through all parts.
    """
    yield from _Reader(parts, stamp, lambda table: table, schema, keep=_OPEN_PARTS).tables(order)


class _Reader:
    """Reader of rows from many row groups, which caches a few of them."""

    def __init__(
        self,
        parts: list[RowGroup],
        stamp: Stamp,
        judge: Callable[[pa.Table], pa.Table],
        schema: pa.Schema,
        keep: int,
    ) -> None:
        self._parts, self._schema = parts, schema
        self._primary, self._judged = stamp.primary, stamp.judged
        self._judge = judge
        self._kept: Recent[int, pa.Table] = Recent(keep)
        self._first = np.cumsum([0, *(len(part.places) for part in parts)])

    def tables(self, order: NDArray[np.int64]) -> Iterator[pa.Table]:
        for start in range(0, len(order), _MERGED):
            chunk = order[start : start + _MERGED]
            owner_of = np.searchsorted(self._first, chunk, side="right") - 1
            owners, position = np.unique(owner_of, return_inverse=True)
            pieces: list[pa.Table] = []
            places: list[NDArray[np.int64]] = []
            for number, owner in enumerate(owners):
                selected = np.flatnonzero(position == number)
                pieces.append(self._table(int(owner)).take(pa.array(chunk[selected] - self._first[owner])))
                places.append(selected)
            inverse = np.argsort(np.concatenate(places), kind="stable")
            yield pa.concat_tables(pieces).take(pa.array(inverse)).combine_chunks()

    def _table(self, owner: int) -> pa.Table:
        if owner in self._kept:
            return self._kept[owner]
        part = self._parts[owner]
        with pq.ParquetFile(part.path, page_checksum_verification=True) as file:
            raw = file.read_row_group(part.group, use_threads=False)
        table, lacking = fitted(raw, self._schema), False
        if self._judged is not None:
            table = self._judged.stated(table, raw.column_names)
            lacking = not set(raw.column_names).issuperset(self._judged.columns)
        if part.primary != self._primary or lacking:
            table = self._judge(table)
        self._kept[owner] = table
        return table
