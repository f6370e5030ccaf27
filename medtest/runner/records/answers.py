"""Stored answers of a run, so that a later revision of an oracle can judge them without asking a system again.

Answers are stored in packs, files ``answers/pack-<digits>.parquet`` of a run's folder. A record names its answer by the
SHA-256 of the stored bytes (``answer_sha256``). A pack is written, synced and renamed into place before the shard of
records that names its answers; packs are named by their content and never changed. When records are merged, small packs
are joined, and answers that no record names any more are dropped. Thumbnails of the report
(:mod:`medtest.runner.records.thumbnails`) are stored in the same way in ``thumbnails/``; these are named by the pixels
or the record that they show.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from medtest.core.records import ADDRESS, ANSWER
from medtest.runner.folder import RECORDS, output_problems, sync_folder, writing
from medtest.runner.records import thumbnails
from medtest.suite.model import MAPS

FOLDER, THUMBNAILS = "answers", "thumbnails"
PACK = re.compile(r"pack-[0-9a-f]{24}\.parquet")
_SCHEMA = pa.schema([("sha256", pa.string()), ("form", pa.string()), ("answer", pa.binary())])
_MOST_BYTES = 32 << 20
"""Bytes of answers that wait in memory before a pack is written."""
_GROUP_BYTES = 4 << 20
_LARGE = 64 << 20
"""Size in bytes from which a pack is not joined with others."""
_FEW = 4
"""Number of packs that need not be joined when records are merged."""
_NAME = "S64"

Names = NDArray[np.bytes_]


class KeptAnswer(NamedTuple):
    """Stored form of one answer, or a thumbnail.

    Attributes:
        sha256: SHA-256 of the data, in hexadecimal; the name of a thumbnail.
        form: ``compact`` or ``maps``, as set in the suite, or a form of thumbnails.
        data: The bytes from the task's ``keep``.
    """

    sha256: str
    form: str
    data: bytes

    @classmethod
    def of(cls, data: bytes, form: str) -> KeptAnswer:
        """Create an answer named by the SHA-256 of its data."""
        return cls(hashlib.sha256(data).hexdigest(), form, data)

    @property
    def below(self) -> str:
        """Name of the folder of its pack."""
        return THUMBNAILS if self.form in thumbnails.FORMS else FOLDER


class AnswerWriter:
    """Writer that collects answers and writes packs.

    Args:
        folder: The system's folder.
        below: Name of the folder of the packs.
    """

    def __init__(self, folder: Path, below: str = FOLDER) -> None:
        self._folder = folder / below
        self._waiting: dict[tuple[str, str], bytes] = {}
        self._bytes = 0

    @property
    def full(self) -> bool:
        """True if enough answers wait to write a pack."""
        return self._bytes >= _MOST_BYTES

    def add(self, answer: KeptAnswer) -> None:
        """Add an answer; equal ones are stored once."""
        key = (answer.sha256, answer.form)
        if key not in self._waiting:
            self._waiting[key] = answer.data
            self._bytes += len(answer.data)

    def flush(self) -> None:
        """Write the waiting answers to disk.

        Raises:
            OutputProblem: They cannot be written.
        """
        if self._waiting:
            _write(self._folder, [(sha256, form, data) for (sha256, form), data in self._waiting.items()])
            self._waiting, self._bytes = {}, 0


def _write(folder: Path, rows: list[tuple[str, str, bytes]]) -> Path:
    name = hashlib.sha256("\n".join(f"{sha256} {form}" for sha256, form, _ in rows).encode()).hexdigest()[:24]
    path = folder / f"pack-{name}.parquet"
    with output_problems(path):
        folder.mkdir(parents=True, exist_ok=True)
    with (
        writing(path) as file,
        pq.ParquetWriter(
            file, _SCHEMA, compression={"sha256": "zstd", "form": "zstd", "answer": "none"}, use_dictionary=["form"]
        ) as pack,
    ):
        for group in _groups(rows):
            columns = zip(*group, strict=True)
            arrays = [pa.array(column, kind.type) for column, kind in zip(columns, _SCHEMA, strict=True)]
            pack.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))
    sync_folder(folder.parent)
    return path


def damage(path: Path) -> str:
    """Describe the damage of a pack, checking each answer against its name; "" if there is none."""
    named = path.parent.name == FOLDER
    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(_SCHEMA, check_metadata=False):
                return "no pack of answers"
            for group in range(file.metadata.num_row_groups):
                table = file.read_row_group(group, use_threads=False)
                pairs = zip(table["sha256"].to_pylist(), table["answer"].to_pylist(), strict=True)
                if named and not all(_is_intact(data, str(name).encode()) for name, data in pairs):
                    return "not what was written"
    except (pa.ArrowException, OSError):
        return "damaged"
    return ""


def _groups(rows: list[tuple[str, str, bytes]]) -> Iterator[list[tuple[str, str, bytes]]]:
    group: list[tuple[str, str, bytes]] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row[2])
        if size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def packs_of(folder: Path, below: str = FOLDER) -> list[Path]:
    """Return the packs of a system's folder."""
    entries = (folder / below).iterdir() if (folder / below).is_dir() else ()
    return sorted(path for path in entries if PACK.fullmatch(path.name) and path.is_file() and not path.is_symlink())


@dataclass
class AnswerStore:
    """Answers of one system's folder, found by name; unreadable packs are ignored.

    Args:
        folder: The system's folder.
        below: Name of the folder of the packs; thumbnails are not checked against their names.
    """

    folder: Path
    below: str = FOLDER
    _groups: list[tuple[Path, int]] = field(default_factory=list, init=False)
    _kept: tuple[int, list[Any]] = field(default=(-1, []), init=False)

    def __post_init__(self) -> None:
        names: list[Names] = []
        maps: list[NDArray[np.bool_]] = []
        places: list[NDArray[np.int64]] = []
        for path in packs_of(self.folder, self.below):
            for group, table in _read_groups(path, ["sha256", "form"]):
                count = table.num_rows
                names.append(np.array(table["sha256"].to_pylist(), dtype=_NAME))
                maps.append(np.array(table["form"].to_pylist(), dtype=object) == MAPS)
                places.append((np.int64(len(self._groups)) << 32) + np.arange(count, dtype=np.int64))
                self._groups.append((path, group))
        every = np.concatenate(names) if names else np.empty(0, _NAME)
        with_maps = np.concatenate(maps) if maps else np.empty(0, np.bool_)
        order = np.lexsort((~with_maps, every))  # for an answer in two packs, prefer the one with maps
        self._names, self._maps = every[order], with_maps[order]
        self._places = (np.concatenate(places) if places else np.empty(0, np.int64))[order]

    def holds(self, names: Names, *, maps: bool) -> NDArray[np.bool_]:
        """Return for each name whether its answer is stored.

        Args:
            names: SHA-256 in hexadecimal, b"" for none.
            maps: True to count only answers stored with maps.
        """
        if not len(self._names):
            return np.zeros(len(names), np.bool_)
        positions = np.minimum(np.searchsorted(self._names, names), len(self._names) - 1)
        stored = (self._names[positions] == names) & (names != b"")
        return np.asarray(stored & self._maps[positions] if maps else stored)

    def read(self, name: bytes) -> bytes | None:
        """Return an answer, checked against its name; None if it is missing or was altered."""
        if not name:
            return None
        first, end = (int(np.searchsorted(self._names, np.bytes_(name), side)) for side in ("left", "right"))
        candidates = (self._data(position) for position in range(first, end))
        if self.below == THUMBNAILS:
            return next((data for data in candidates if data is not None), None)
        return next((data for data in candidates if _is_intact(data, name)), None)

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the answers of several names, each pack read once; names of missing answers are left out."""
        wanted = np.unique(np.array([name for name in names if name], dtype=_NAME))
        present = wanted[self.holds(wanted, maps=False)] if len(wanted) else wanted
        in_order = sorted(present, key=lambda name: int(self._places[np.searchsorted(self._names, name)]))
        answers = ((name.decode(), self.read(name)) for name in in_order)
        return {name: data for name, data in answers if data is not None}

    def _data(self, at: int) -> bytes | None:
        group, row = int(self._places[at]) >> 32, int(self._places[at]) & 0xFFFFFFFF
        if self._kept[0] != group:
            path, number = self._groups[group]
            group_answers: list[Any] = next(
                (table["answer"].to_pylist() for _, table in _read_groups(path, ["answer"], [number])), []
            )
            self._kept = (group, group_answers)
        data: bytes | None = self._kept[1][row] if row < len(self._kept[1]) else None
        return data


def _is_intact(data: bytes | None, name: bytes) -> bool:
    return data is not None and hashlib.sha256(data).hexdigest().encode() == name


def _read_groups(path: Path, columns: list[str], groups: Iterable[int] | None = None) -> Iterator[tuple[int, pa.Table]]:
    with suppress(pa.ArrowException, OSError, KeyError), pq.ParquetFile(path) as file:
        for group in range(file.metadata.num_row_groups) if groups is None else groups:
            yield group, file.read_row_group(group, columns=columns, use_threads=False)


def tidy(folder: Path) -> None:
    """Join small packs, and drop answers and thumbnails that no record names; the old packs are removed.

    Args:
        folder: The system's folder, whose records are merged.

    Raises:
        OutputProblem: A pack cannot be written or removed.
    """
    for below in (FOLDER, THUMBNAILS):
        _tidy(folder, below)


def _tidy(folder: Path, below: str) -> None:
    small = [path for path in packs_of(folder, below) if path.stat().st_size < _LARGE]
    if len(small) <= _FEW:
        return
    named = _recorded_names(folder, below)
    if named is None:
        return
    new_packs: set[Path] = set()
    written_answers: set[tuple[str, str]] = set()
    waiting: list[tuple[str, str, bytes]] = []
    size = 0
    small = [path for path in small if _group_count(path) >= 0]
    read_whole: list[Path] = []
    for path in small:
        groups_read = 0
        for _, table in _read_groups(path, _SCHEMA.names):
            groups_read += 1
            is_named = np.isin(np.array(table["sha256"].to_pylist(), dtype=_NAME), named)
            for row in zip(*(column.to_pylist() for column in table.filter(pa.array(is_named)).columns), strict=True):
                if row[:2] in written_answers or (below == FOLDER and not _is_intact(row[2], row[0].encode())):
                    continue
                written_answers.add(row[:2])
                waiting.append(row)
                size += len(row[2])
            if size >= _LARGE:
                new_packs.add(_write(folder / below, waiting))
                waiting, size = [], 0
        if groups_read == _group_count(path):
            read_whole.append(path)
    if waiting:
        new_packs.add(_write(folder / below, waiting))
    for path in read_whole:
        if path not in new_packs:
            with output_problems(path):
                path.unlink(missing_ok=True)


def _group_count(path: Path) -> int:
    """Return the number of row groups of a pack; -1 if it is unreadable or no pack."""
    with suppress(pa.ArrowException, OSError), pq.ParquetFile(path) as file:
        return int(file.metadata.num_row_groups) if file.schema_arrow.names == _SCHEMA.names else -1
    return -1


def _recorded_names(folder: Path, below: str) -> Names | None:
    """Return the names of the answers (or thumbnails) of a folder's merged records; None if they are unreadable."""
    columns = [ANSWER] if below == FOLDER else [ADDRESS, "source_sha256", "followup_sha256", ANSWER]
    try:
        with pq.ParquetFile(folder / RECORDS) as file:
            table = file.read(columns=columns)
            if below == FOLDER:
                names = table[ANSWER].fill_null("").to_pylist()
            else:
                names = list(thumbnails.names_of(iter(table.to_pylist())))
    except (pa.ArrowException, OSError, KeyError):
        return None
    return np.unique(np.array(names, dtype=_NAME))


def forget(folder: Path) -> None:
    """Delete the answers and thumbnails of a system's folder and leave other files alone.

    Raises:
        OutputProblem: A pack cannot be deleted.
    """
    for below in (FOLDER, THUMBNAILS):
        for path in packs_of(folder, below):
            with output_problems(path):
                path.unlink(missing_ok=True)
        for draft in (folder / below).glob(".pack-*.tmp"):
            draft.unlink(missing_ok=True)
        with suppress(OSError):
            (folder / below).rmdir()
