"""SQLite files shared by several processes: one way to open them, with waiting for other processes.

SQLite itself waits for a lock (``timeout``) wherever it can, but not where two processes wait for each other: if two
processes open a fresh file and switch it to WAL at the same time, one fails at once with "database is locked",
regardless of its timeout. This module retries until the wait is over.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

WAIT_SECONDS = 60.0
"""Seconds that a process waits for others that hold the file."""
_PAUSE_SECONDS = 0.02
_PRIMARY = 0xFF
"""Mask for the primary result code within SQLite's extended codes."""

T = TypeVar("T")


def connect(
    path: Path, *, durable: bool = False, wait: float = WAIT_SECONDS, implicit: bool = False, wal: bool = True
) -> sqlite3.Connection:
    """Open a file for reading and writing; create the file, but not its folder, if it does not exist.

    Args:
        path: The file.
        durable: True if a commit must be on disk when it returns; otherwise a power cut may undo the last ones.
        wait: Seconds to wait for others, here and in every statement.
        implicit: True to let Python's ``sqlite3`` begin transactions itself; otherwise each statement is its own
            transaction unless it follows a BEGIN.
        wal: True to switch the file to WAL if the file system supports it; otherwise its journal mode is not changed.

    Returns:
        A connection that several threads may use in turn; foreign keys are enforced.

    Raises:
        sqlite3.Error: The file cannot be opened, is not a database, or was held by others for the whole wait.
    """
    begin: Literal["DEFERRED"] | None = "DEFERRED" if implicit else None
    connection = sqlite3.connect(path, isolation_level=begin, timeout=wait, check_same_thread=False)
    try:
        patiently(lambda: _prepare(connection, durable=durable, wal=wal), wait)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, *, durable: bool, wal: bool) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    if wal and connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")


def read(path: Path, look: Callable[[sqlite3.Connection], T], *, wait: float = WAIT_SECONDS) -> T:
    """Read an existing file with a function and return its result; wait for processes that write the file."""

    def looked() -> T:
        connection = connect_readonly(path, wait=wait)
        try:
            return look(connection)
        finally:
            connection.close()

    return patiently(looked, wait)


def connect_readonly(path: Path, *, immutable: bool = False, wait: float = WAIT_SECONDS) -> sqlite3.Connection:
    """Open an existing file read-only.

    Args:
        path: The file.
        immutable: True if no process can write it, as in a read-only folder: SQLite creates no files beside it.
        wait: Seconds to wait for others in every statement.

    Raises:
        sqlite3.Error: The file does not exist.
    """
    address = f"{path.resolve().as_uri()}?mode=ro" + ("&immutable=1" if immutable else "")
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=wait, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def patiently(do: Callable[[], T], wait: float = WAIT_SECONDS) -> T:
    """Call a function, and retry while others hold the file, for a limited number of seconds.

    Raises:
        sqlite3.Error: As raised by the function, or when the wait is over.
    """
    end = time.monotonic() + wait
    while True:
        try:
            return do()
        except sqlite3.OperationalError as error:
            if not is_held(error) or time.monotonic() > end:
                raise
        time.sleep(_PAUSE_SECONDS)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Open a transaction that is applied completely or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it already
            connection.execute("ROLLBACK")
        raise


def is_held(error: Any) -> bool:
    """Return True if SQLite refused because others hold the file."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & _PRIMARY in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
