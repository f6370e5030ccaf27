"""SQLite files that several processes use at once: the one way to open them, in which each waits for the others.

SQLite waits for a lock by itself (``timeout``) wherever it can, but not where two wait for one another: of two
processes that open a fresh file and switch it to WAL at once, one is told "database is locked" at once, whatever its
timeout. Here it tries again until the wait is over.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

WAIT_SECONDS = 60.0
"""How long a process waits for others that hold the file."""
_PAUSE_SECONDS = 0.02
_PRIMARY = 0xFF
"""The part of SQLite's extended codes that says what kind of error it is."""

T = TypeVar("T")


def connect(
    path: Path, *, durable: bool = False, wait: float = WAIT_SECONDS, implicit: bool = False, wal: bool = True
) -> sqlite3.Connection:
    """Open a file to read and write, made where it does not exist, its folder not.

    Args:
        path: The file.
        durable: A commit is on disk when it returns; else a power cut may undo the last ones.
        wait: Seconds to wait for others, here and in every statement.
        implicit: Python's ``sqlite3`` begins transactions itself; else statements stand alone, or after a BEGIN.
        wal: Switch the file to WAL where the file system has it; else its journal stays what its owner made it.

    Returns:
        A connection that several threads may use in turn; foreign keys are enforced.

    Raises:
        sqlite3.Error: The file cannot be opened, is no database, or was held by others all the while.
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
    """Return what a function reads from a file that is not written; waits for those who write it.

    Args:
        path: The file; never made.
        look: Is handed a connection, which is closed afterwards.
        wait: Seconds.

    Raises:
        sqlite3.Error: The file cannot be read, is no database, or was held by others all the while.
    """

    def looked() -> T:
        connection = connect_readonly(path, wait=wait)
        try:
            return look(connection)
        finally:
            connection.close()

    return patiently(looked, wait)


def connect_readonly(path: Path, *, immutable: bool = False, wait: float = WAIT_SECONDS) -> sqlite3.Connection:
    """Open a file that is there to read it.

    Args:
        path: The file.
        immutable: Nobody can write it, as in a folder that takes no files: SQLite makes none beside it.
        wait: Seconds to wait for others in every statement.

    Raises:
        sqlite3.Error: There is no such file.
    """
    address = f"{path.resolve().as_uri()}?mode=ro" + ("&immutable=1" if immutable else "")
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=wait, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def patiently(do: Callable[[], T], wait: float = WAIT_SECONDS) -> T:
    """Do something, and do it again while others hold the file, for so many seconds at most.

    Raises:
        sqlite3.Error: As it does otherwise, and where the wait is over.
    """
    end = time.monotonic() + wait
    while True:
        try:
            return do()
        except sqlite3.OperationalError as error:
            if not is_held(error) or time.monotonic() > end:
                raise
        time.sleep(_PAUSE_SECONDS)


def is_held(error: Any) -> bool:
    """Whether SQLite refused because others hold the file."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & _PRIMARY in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
