"""What a file of records says of its own content: one SHA-256 over all that is read from it.

Page checksums of Parquet see a damaged page. They do not see whole columns that were exchanged, rows that stand in
another file, or a footer that points elsewhere: whatever a reader gets is compared with what the writer had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from medtest.core.files import file_sha256
from medtest.core.records import ADDRESS, KEY_COLUMNS, addresses

CONTENT, CSV, SEALED = b"medtest.content", b"medtest.csv", b"medtest.sealed"
"""Keys of a file's metadata: the seal of its content, the SHA-256 of the ``records.csv`` beside it, and that it has a
seal, which stands with the schema and is kept by whoever writes the table anew."""
JOINED = b"medtest.joined"
"""Key of records that were joined of shards: the SHA-256 of the shards' seals. A run that adds a case writes none."""


class Seal:
    """Takes row groups in their order and gives the seal of the file.

    Args:
        stamps: What else the file says of itself.
    """

    def __init__(self, *stamps: str) -> None:
        self._sha = hashlib.sha256("\0".join(stamps).encode())

    def add(self, group: pa.Table) -> None:
        """Take a row group: names, types, values and what is empty, whatever buffers they lie in."""
        for name, column in zip(group.column_names, group.columns, strict=True):
            array = column.combine_chunks()
            if isinstance(array, pa.ChunkedArray):  # of no rows
                array = pa.array([], column.type)
            self._sha.update(f"{name}\0{array.type}\0{len(array)}\0".encode())
            self._sha.update(np.packbits(array.is_valid().to_numpy(zero_copy_only=False)).tobytes())
            for part in _values(array):
                self._sha.update(part)

    def value(self) -> bytes:
        """Return the seal so far, as hexadecimal digits."""
        return self._sha.hexdigest().encode()


def seal_of(groups: Iterable[pa.Table], *stamps: str) -> bytes:
    """Return the seal of a file with these row groups."""
    seal = Seal(*stamps)
    for group in groups:
        seal.add(group)
    return seal.value()


def _values(array: Any) -> Iterable[bytes]:
    if not pa.types.is_string(array.type):
        yield array.fill_null(0).to_numpy(zero_copy_only=False).tobytes()
        return
    filled = array.fill_null("")
    _, places, letters = filled.buffers()
    if len(filled) == 0 or places is None:
        return
    ends = np.frombuffer(places, np.int32)[filled.offset : filled.offset + len(filled) + 1]
    yield np.diff(ends).tobytes()
    if letters is not None:
        yield memoryview(letters)[int(ends[0]) : int(ends[-1])].tobytes()


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a schema: those it lacks are empty, others of it are left out.

    A lacking address is made of the key columns.
    """
    there = set(table.column_names)
    columns = [table.column(field.name) if field.name in there else _made(table, field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema.remove_metadata())


def _made(table: pa.Table, field: pa.Field) -> pa.Array:
    if field.name == ADDRESS:
        return pa.array(addresses({name: table[name].to_pylist() for name in KEY_COLUMNS}), field.type)
    return pa.nulls(table.num_rows, field.type)


def text_mark(path: Path) -> bytes:
    """Return what a seal notes of the text file beside the records: its SHA-256, b"" where it cannot be read."""
    try:
        return file_sha256(path).encode()
    except OSError:
        return b""
