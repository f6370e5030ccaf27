"""SQLite files that keep answers: opened, found whole or set aside, and each outcome beside its SHA-256.

A file that SQLite cannot read, or whose tables are not ours, is renamed and a new one begun: what it kept is asked
again. An outcome whose SHA-256 does not fit (a byte was hit, or rows were exchanged) counts as not kept.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from medtest.core.errors import OutputProblem
from medtest.core.files import sqlite

_SIDES = ("", "-wal", "-shm")
_DAMAGED = {1: "is not what medtest keeps", 11: "is damaged", 24: "is damaged", 26: "is no SQLite file"}
"""SQLite's primary result codes for what waiting does not mend: ERROR, CORRUPT, FORMAT, NOTADB."""
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, kept_at REAL NOT NULL, outcome TEXT NOT NULL, sha256 TEXT) WITHOUT ROWID;
"""


class CacheMode(StrEnum):
    """How what is kept is used: read and written, written only, or not at all."""

    USE = "use"
    REFRESH = "refresh"
    OFF = "off"


class KeptTexts:
    """Texts by key in one file, for any number of processes.

    Args:
        path: The file; made with its folder where it does not exist and the mode needs it. None keeps nothing.
        mode: ``use``, ``refresh`` (nothing is given out, what is new is kept) or ``off``.
        what: What messages call the file.

    Attributes:
        set_aside: What was wrong with the file that lay there and where it is now, one line; "" where nothing was.

    Raises:
        OutputProblem: The file cannot be used.
    """

    def __init__(self, path: Path | None, mode: CacheMode | str, what: str) -> None:
        self.mode = CacheMode.OFF if path is None else CacheMode(mode)
        self._called = f"{what} {path}"
        self._db: sqlite3.Connection | None = None
        self.set_aside = ""
        if path is None or self.mode == CacheMode.OFF:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db, self.set_aside = opened(path, _TABLE, ("answers",))
        except (OSError, sqlite3.Error) as error:
            raise OutputProblem(f"{self._called} cannot be used ({error}); delete it, or say cache=off") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def text(self, key: str) -> str | None:
        """Return the text kept whole under a key, or None.

        Raises:
            OutputProblem: The file cannot be read.
        """
        if self._db is None or self.mode != CacheMode.USE:
            return None
        with self._used():
            row = self._db.execute("SELECT key, outcome, sha256 FROM answers WHERE key=?", (key,)).fetchone()
        return None if row is None or not is_whole(row[2], *row[:2]) else str(row[1])

    def keep(self, key: str, text: str) -> None:
        """Keep a text.

        Raises:
            OutputProblem: The file cannot be written.
        """
        if self._db is None:
            return
        with self._used():
            self._db.execute(
                "INSERT OR REPLACE INTO answers (key, kept_at, outcome, sha256) VALUES (?, ?, ?, ?)",
                (key, time.time(), text, outcome_sha256(key, text)),
            )

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Turn what the file or its disk refuses into one message: it is no fault of the system under test."""
        try:
            yield
        except sqlite3.Error as error:
            raise OutputProblem(
                f"{self._called} cannot be used ({error}); delete it, or say cache=off, and run the same"
                " command to go on"
            ) from None


def opened(path: Path, script: str, tables: Sequence[str]) -> tuple[sqlite3.Connection, str]:
    """Open a file in write-ahead mode, and make it anew where what lies there cannot be used.

    Args:
        path: The file; its folder exists.
        script: Makes the tables that are missing.
        tables: Their names; those with outcomes have a column ``sha256``, which files of the version before lack.

    Returns:
        The connection, and what was set aside and why, one line; "" where nothing was.

    Raises:
        OSError: It cannot be renamed.
        sqlite3.Error: It cannot be opened for another reason (a full disk, no leave to write).
    """
    try:
        return _connected(path, script, tables), ""
    except sqlite3.Error as error:
        problem = damage(error)
        if not problem:
            raise
    aside = f"{path.name}.aside-{time.time_ns()}"
    for side in _SIDES:  # a log that is left behind would be played into the new file
        with suppress(FileNotFoundError):
            path.with_name(path.name + side).rename(path.with_name(aside + side))
    return _connected(path, script, tables), f"{path.name} {problem}; it was set aside as {aside}"


def _connected(path: Path, script: str, tables: Sequence[str]) -> sqlite3.Connection:
    db = sqlite.connect(path)
    try:
        db.text_factory = lambda letters: letters.decode("utf-8", "replace")  # what is no UTF-8 fits no SHA-256
        said = db.execute("PRAGMA quick_check(1)").fetchone()
        if said is None or said[0] != "ok":
            raise Damaged("its own check fails")
        db.executescript(script)
        for table in tables:
            columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            if "outcome" in columns and "sha256" not in columns:
                with suppress(sqlite3.OperationalError):  # another process has just done so
                    db.execute(f"ALTER TABLE {table} ADD COLUMN sha256 TEXT")
    except BaseException:
        db.close()
        raise
    return db


class Damaged(sqlite3.DatabaseError):
    """The file's own check fails."""

    sqlite_errorcode = 11


def damage(error: sqlite3.Error) -> str:
    """Return what is wrong with a file that gave this error, "" where the file is not to blame."""
    code = getattr(error, "sqlite_errorcode", None)
    return "" if code is None else _DAMAGED.get(int(code) & 0xFF, "")


def outcome_sha256(*parts: str) -> str:
    """Return the SHA-256 of a row: what it is kept under, and what is kept."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_whole(sha256: str | None, *parts: object) -> bool:
    """Say whether a row is what was written; one of the version before, without SHA-256, is taken as it is."""
    return sha256 is None or (
        all(isinstance(part, str) for part in parts) and sha256 == outcome_sha256(*map(str, parts))
    )
