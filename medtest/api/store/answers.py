"""SQLite files with answers: opened if intact and set aside otherwise, with a SHA-256 for each outcome.

A file that SQLite cannot read, or with foreign tables, is renamed and replaced by a new one: its answers are requested
again. An outcome whose SHA-256 does not match (a flipped byte, exchanged rows) counts as missing.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Self

from medtest.core.errors import OutputProblem
from medtest.core.files import sqlite

_SIDES = ("", "-wal", "-shm")
_DAMAGED = {1: "was not written by medtest", 11: "is damaged", 24: "is damaged", 26: "is not an SQLite file"}
"""SQLite's primary result codes for errors that waiting does not fix: ERROR, CORRUPT, FORMAT, NOTADB."""
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, kept_at REAL NOT NULL, outcome TEXT NOT NULL, sha256 TEXT) WITHOUT ROWID;
"""


class CacheMode(StrEnum):
    """Use of stored answers: read and write, write only, or none."""

    USE = "use"
    REFRESH = "refresh"
    OFF = "off"


class SqliteFile:
    """SQLite file of medtest's; a context manager that closes it.

    Args:
        path: The file; created with its folder if missing. None for a file in memory.
        script: Creates missing tables.
        title: Name of the file in messages.
        advice: What the user can do if the file or its disk fails, which is not a fault of the system under test.

    Attributes:
        set_aside: Problem of the previous file and its new location, one line; "" if there was none.

    Raises:
        OutputProblem: The file cannot be used.
    """

    def __init__(self, path: Path | None, script: str, *, title: str, advice: str) -> None:
        self.path, self._title, self._advice = path, title, advice
        self.set_aside = ""
        if path is None:
            self._db = sqlite3.connect(":memory:", check_same_thread=False)
            return
        with self._using():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db, self.set_aside = opened(path, script)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Convert errors of the file or its disk to one message."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise OutputProblem(f"{self._title} {self.path} cannot be used ({error}): {self._advice}") from None


class KeptTexts(SqliteFile):
    """Texts by key in one file, for any number of processes.

    Args:
        path: The file; created with its folder if missing and needed by the mode. None stores nothing.
        mode: ``use``, ``refresh`` (nothing is read, new texts are stored) or ``off``.
        title: Name of the file in messages.

    Raises:
        OutputProblem: The file cannot be used.
    """

    def __init__(self, path: Path | None, mode: CacheMode | str, title: str) -> None:
        self.mode = CacheMode.OFF if path is None else CacheMode(mode)
        advice = "delete it or set cache=off, then run the same command again"
        path = None if self.mode == CacheMode.OFF else path
        super().__init__(path, _TABLE, title=title, advice=advice)

    def text(self, key: str) -> str | None:
        """Return the undamaged text stored under a key, or None.

        Raises:
            OutputProblem: The file cannot be read.
        """
        if self.mode != CacheMode.USE:
            return None
        with self._using():
            row = self._db.execute("SELECT key, outcome, sha256 FROM answers WHERE key=?", (key,)).fetchone()
        return None if row is None or not is_whole(row[2], *row[:2]) else str(row[1])

    def keep(self, key: str, text: str) -> None:
        """Store a text.

        Raises:
            OutputProblem: The file cannot be written.
        """
        if self.mode == CacheMode.OFF:
            return
        with self._using():
            self._db.execute(
                "INSERT OR REPLACE INTO answers (key, kept_at, outcome, sha256) VALUES (?, ?, ?, ?)",
                (key, time.time(), text, outcome_sha256(key, text)),
            )


def opened(path: Path, script: str) -> tuple[sqlite3.Connection, str]:
    """Open a file in write-ahead mode, and replace it if it cannot be used.

    Args:
        path: The file; its folder exists.
        script: Creates missing tables.

    Returns:
        The connection, and a line about the file set aside; "" if there was none.

    Raises:
        OSError: It cannot be renamed.
        sqlite3.Error: It cannot be opened for another reason (a full disk, no write permission).
    """
    try:
        return _connected(path, script), ""
    except sqlite3.Error as error:
        problem = damage(error)
        if not problem:
            raise
    aside = f"{path.name}.aside-{time.time_ns()}"
    for side in _SIDES:  # a remaining log would be replayed into the new file
        with suppress(FileNotFoundError):
            path.with_name(path.name + side).rename(path.with_name(aside + side))
    return _connected(path, script), f"{path.name} {problem}; it was set aside as {aside}"


def _connected(path: Path, script: str) -> sqlite3.Connection:
    db = sqlite.connect(path)
    try:
        db.text_factory = lambda letters: letters.decode("utf-8", "replace")  # invalid UTF-8 matches no SHA-256
        check = db.execute("PRAGMA quick_check(1)").fetchone()
        if check is None or check[0] != "ok":
            failed = sqlite3.DatabaseError("fails SQLite's integrity check")
            failed.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise failed
        db.executescript(script)
    except BaseException:
        db.close()
        raise
    return db


def damage(error: sqlite3.Error) -> str:
    """Return the problem of a file that caused this error, "" if the file is not the cause."""
    code = getattr(error, "sqlite_errorcode", None)
    return "" if code is None else _DAMAGED.get(int(code) & 0xFF, "")


def outcome_sha256(*parts: str) -> str:
    """Return the SHA-256 of a row: its key and its content."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_whole(sha256: str | None, *parts: object) -> bool:
    """Return True if a row is undamaged."""
    return all(isinstance(part, str) for part in parts) and sha256 == outcome_sha256(*map(str, parts))
