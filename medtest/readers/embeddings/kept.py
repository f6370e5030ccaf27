"""Features kept by picture and network, in one file that all runs share: no picture is embedded twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from medtest.api.store.answers import opened
from medtest.core.errors import OutputProblem
from medtest.readers.embeddings.base import Rows

FILE: Final = "features.sqlite"
_TABLE = """
CREATE TABLE IF NOT EXISTS features (
    net TEXT NOT NULL, picture TEXT NOT NULL, features BLOB NOT NULL, scores BLOB NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (net, picture));
"""
_TOGETHER: Final = 500
_HELD: Final = 128 << 20
"""Features that take no more bytes than this are held in memory once they were read."""


def net_key(fingerprint: Mapping[str, Any]) -> str:
    """Return what stands for a network in the file: the SHA-256 of all that its features depend on."""
    return hashlib.sha256(json.dumps(fingerprint, sort_keys=True).encode()).hexdigest()


class FeatureFile:
    """The file.

    Args:
        path: Where it lies; made with its folder.

    Raises:
        OutputProblem: It cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db, self.set_aside = opened(path, _TABLE, ("features",))
        except (OSError, sqlite3.Error) as error:
            raise self._problem(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._db.close()

    def known(self, net: str, pictures: Sequence[str]) -> set[str]:
        """Return those of some pictures whose features it holds."""
        found: set[str] = set()
        for start in range(0, len(pictures), _TOGETHER):
            some = pictures[start : start + _TOGETHER]
            found.update(row[0] for row in self._rows("picture", net, some))
        return found

    def read(self, net: str, pictures: Sequence[str]) -> dict[str, tuple[Rows, Rows]]:
        """Return features and scores, float32 D and C, of those pictures that it holds whole."""
        found = {}
        for start in range(0, len(pictures), _TOGETHER):
            some = list(dict.fromkeys(pictures[start : start + _TOGETHER]))
            for name, features, scores, crc in self._rows("picture, features, scores, crc", net, some):
                if crc == _crc(net, name, features, scores):
                    found[name] = (np.frombuffer(features, np.float32), np.frombuffer(scores, np.float32))
        return found

    def keep(self, net: str, rows: Mapping[str, tuple[Rows, Rows]]) -> None:
        """Keep features and scores of pictures, all or none.

        Raises:
            OutputProblem: The file cannot be written.
        """
        given = [
            (net, name, one := np.ascontiguousarray(features, np.float32).tobytes(), two, _crc(net, name, one, two))
            for name, (features, scores) in rows.items()
            for two in (np.ascontiguousarray(scores, np.float32).tobytes(),)
        ]
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?, ?)", given)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._problem(error) from None

    def _rows(self, columns: str, net: str, pictures: Sequence[str]) -> list[Any]:
        marks = ",".join("?" * len(pictures))
        query = f"SELECT {columns} FROM features WHERE net=? AND picture IN ({marks})"  # noqa: S608 - columns are ours
        try:
            return self._db.execute(query, (net, *pictures)).fetchall()
        except sqlite3.Error as error:
            raise self._problem(error) from None

    def _problem(self, error: Exception) -> OutputProblem:
        return OutputProblem(f"the file of features {self._path} cannot be used ({error}); delete it and run again")


def _crc(net: str, name: str, features: bytes, scores: bytes) -> int:
    return zlib.crc32(scores, zlib.crc32(features, zlib.crc32(f"{net}\0{name}".encode())))


class KeptFeatures:
    """Features, or scores, of pictures in the order of their names: rows of a :class:`FeatureFile`.

    Args:
        file: The file.
        net: The network (:func:`net_key`).
        pictures: Names; one may come more than once.
        scores: Scores of classes in place of features.

    Raises:
        KeyError: One is not in the file.
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
        """How many pictures."""
        return len(self._pictures)

    def chunks(self) -> Iterator[Rows]:
        """Yield rows in order, float32, at most 1,024 at once."""
        for start in range(0, self.count, 1024):
            yield self.rows(np.arange(start, min(start + 1024, self.count)))

    def rows(self, numbers: np.ndarray[Any, np.dtype[np.int64]]) -> Rows:
        """Return some rows, float32, in the order of their numbers."""
        if self._held is not None:
            held: Rows = self._held[numbers]
            return held
        return self._read([self._pictures[n] for n in numbers])

    def _read(self, pictures: Sequence[str]) -> Rows:
        if not pictures:
            return np.zeros((0, self.dimension), np.float32)
        found = self._file.read(self._net, pictures)
        return np.stack([found[name][self._side] for name in pictures])
