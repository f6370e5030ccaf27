"""Stores features by picture and network in a file shared by all runs, so that no picture is embedded twice."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from medtest.api.store.answers import SqliteFile
from medtest.readers.embeddings.base import Rows

FILE: Final = "features.sqlite"
_TABLE = """
CREATE TABLE IF NOT EXISTS features (
    net TEXT NOT NULL, picture TEXT NOT NULL, features BLOB NOT NULL, scores BLOB NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (net, picture));
"""
_TOGETHER: Final = 500
_HELD: Final = 128 << 20
"""Features up to this number of bytes are held in memory after they are read."""


def net_key(fingerprint: Mapping[str, Any]) -> str:
    """Return the key of a network in the file: the SHA-256 of everything its features depend on."""
    return hashlib.sha256(json.dumps(fingerprint, sort_keys=True).encode()).hexdigest()


class FeatureFile(SqliteFile):
    """The file of features.

    Args:
        path: Path of the file; created with its folder.

    Raises:
        OutputProblem: The file is unusable.
    """

    def __init__(self, path: Path) -> None:
        advice = "delete it, then run the same command again"
        super().__init__(path, _TABLE, title="the file of features", advice=advice)

    def known(self, net: str, pictures: Sequence[str]) -> set[str]:
        """Return which of the pictures have features in the file."""
        names: set[str] = set()
        for start in range(0, len(pictures), _TOGETHER):
            some = pictures[start : start + _TOGETHER]
            names.update(row[0] for row in self._rows("picture", net, some))
        return names

    def read(self, net: str, pictures: Sequence[str]) -> dict[str, tuple[Rows, Rows]]:
        """Return features and scores, float32 D and C, of the pictures whose entries are intact."""
        rows = {}
        for start in range(0, len(pictures), _TOGETHER):
            some = list(dict.fromkeys(pictures[start : start + _TOGETHER]))
            for name, features, scores, crc in self._rows("picture, features, scores, crc", net, some):
                if crc == _crc(net, name, features, scores):
                    rows[name] = (np.frombuffer(features, np.float32), np.frombuffer(scores, np.float32))
        return rows

    def keep(self, net: str, rows: Mapping[str, tuple[Rows, Rows]]) -> None:
        """Store features and scores of pictures, all or none.

        Raises:
            OutputProblem: The file cannot be written.
        """
        entries = []
        for name, both in rows.items():
            features, scores = (np.ascontiguousarray(values, np.float32).tobytes() for values in both)
            entries.append((net, name, features, scores, _crc(net, name, features, scores)))
        with self._using():
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?, ?)", entries)
            self._db.execute("COMMIT")

    def _rows(self, columns: str, net: str, pictures: Sequence[str]) -> list[Any]:
        marks = ",".join("?" * len(pictures))
        query = f"SELECT {columns} FROM features WHERE net=? AND picture IN ({marks})"  # noqa: S608 - columns are ours
        with self._using():
            return self._db.execute(query, (net, *pictures)).fetchall()


def _crc(net: str, name: str, features: bytes, scores: bytes) -> int:
    return zlib.crc32(scores, zlib.crc32(features, zlib.crc32(f"{net}\0{name}".encode())))


class KeptFeatures:
    """Features or scores of pictures in the order of their names: rows of a :class:`FeatureFile`.

    Args:
        file: The file.
        net: Key of the network (:func:`net_key`).
        pictures: Names, possibly repeated.
        scores: Use class scores instead of features.

    Raises:
        KeyError: A picture is not in the file.
    """

    def __init__(self, file: FeatureFile, net: str, pictures: Sequence[str], *, scores: bool = False) -> None:
        self._file, self._net, self._side = file, net, int(scores)
        self._pictures = list(pictures)
        self.dimension = len(self._read(self._pictures[:1])[0]) if self._pictures else 0
        self._held: Rows | None = None
        if len(self._pictures) * self.dimension * 4 <= _HELD and self._pictures:
            self._held = self._read(self._pictures)

    @property
    def count(self) -> int:
        """Number of pictures."""
        return len(self._pictures)

    def chunks(self) -> Iterator[Rows]:
        """Yield rows in order, float32, at most 1,024 at a time."""
        for start in range(0, self.count, 1024):
            yield self.rows(np.arange(start, min(start + 1024, self.count)))

    def rows(self, numbers: np.ndarray[Any, np.dtype[np.int64]]) -> Rows:
        """Return the rows with the given numbers, float32, in that order."""
        if self._held is not None:
            held: Rows = self._held[numbers]
            return held
        return self._read([self._pictures[n] for n in numbers])

    def _read(self, pictures: Sequence[str]) -> Rows:
        if not pictures:
            return np.zeros((0, self.dimension), np.float32)
        rows = self._file.read(self._net, pictures)
        return np.stack([rows[name][self._side] for name in pictures])
