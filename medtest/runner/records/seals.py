"""Seals of record files: one SHA-256 over everything that is read from a file.

Parquet's page checksums detect a damaged page. They do not detect exchanged columns, rows from another file, or a
footer that points elsewhere: the seal compares what a reader gets with what the writer had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from medtest.core.files import file_sha256

CONTENT, CSV = b"medtest.content", b"medtest.csv"
"""Keys of a file's metadata: the seal of its content, and the SHA-256 of the ``records.csv`` beside it."""
JOINED = b"medtest.joined"
"""Key of records that were joined from shards: the SHA-256 of the shards' seals. A run that adds a case omits it."""


class Seal:
    """Seal of a file, computed from its row groups in order.

    Args:
        stamps: Further metadata of the file.
    """

    def __init__(self, *stamps: str) -> None:
        self._sha = hashlib.sha256("\0".join(stamps).encode())

    def add(self, group: pa.Table) -> None:
        """Add a row group: names, types, values and nulls, regardless of the layout of buffers."""
        for name, column in zip(group.column_names, group.columns, strict=True):
            array = column.combine_chunks()
            if isinstance(array, pa.ChunkedArray):  # without rows
                array = pa.array([], column.type)
            self._sha.update(f"{name}\0{array.type}\0{len(array)}\0".encode())
            self._sha.update(np.packbits(array.is_valid().to_numpy(zero_copy_only=False)).tobytes())
            for part in _values(array):
                self._sha.update(part)

    def value(self) -> bytes:
        """Return the seal so far, in hexadecimal."""
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
    """Return a table with the columns of a schema: missing ones are null, additional ones are dropped."""
    present = set(table.column_names)
    columns = [
        table.column(field.name) if field.name in present else pa.nulls(table.num_rows, field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema.remove_metadata())


def text_mark(path: Path) -> bytes:
    """Return the SHA-256 of the text file beside the records, b"" if it is unreadable."""
    try:
        return file_sha256(path).encode()
    except OSError:
        return b""
