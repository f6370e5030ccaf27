"""Index of a store: the metadata of every follow-up, in one SQLite file.

SQLite in WAL mode, for three reasons: a transaction is complete or absent after SIGKILL or on a full disk; several
processes may write while others read; and a runner asks for a few follow-ups at a time, which a B-tree answers without
reading the rest. (Shards of Parquet would have to be read whole, or merged.) WAL needs a local disk; on file systems
that refuse it SQLite's rollback journal is used.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medtest.core.errors import MedtestError, OutputProblem
from medtest.core.files import sqlite
from medtest.runner.followups.entry import Entry, SuiteEntry
from medtest.runner.followups.index_rows import ENTRY, INDEX, TABLES, add_followup, add_source, entry_of

FORMAT = 1
_APPLICATION = 0x4D544655  # "MTFU"
_PAGE = 500


class Index:
    """Index of one store; may be shared by threads and passed to other processes.

    Args:
        folder: The store's folder.
        readonly: Open an existing index and never write.
    """

    def __init__(self, folder: Path, *, readonly: bool) -> None:
        self.path = folder / INDEX
        self.readonly = readonly
        self._local = threading.local()
        self._connection()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "readonly": self.readonly}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path, self.readonly = state["path"], state["readonly"]
        self._local = threading.local()

    # --------------------------------------------------------------------------------------------- connections

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection; one from before a fork is not reused."""
        cached = getattr(self._local, "held", None)
        if cached is not None and cached[0] == os.getpid():
            return cached[1]  # type: ignore[no-any-return]
        with _problems(self.path):
            connection = self._open_readonly() if self.readonly else self._open()
        self._local.held = (os.getpid(), connection)
        return connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite.connect(self.path)
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            with sqlite.transaction(connection):
                if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # no other process was faster
                    for statement in filter(str.strip, TABLES.split(";\n")):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
        self._check_format(connection)
        return connection

    def _open_readonly(self) -> sqlite3.Connection:
        if not self.path.is_file():
            raise MedtestError(
                f"{self.path.parent.name} holds no follow-ups. Make some: medtest followups make suite=NAME"
            )
        try:
            connection = sqlite.connect_readonly(self.path)
            sqlite.patiently(lambda: self._check_format(connection))
        except sqlite3.OperationalError as error:
            if sqlite.is_held(error):
                raise
            # SQLite cannot create a shared-memory file in a read-only folder, in which no process can be writing
            # either.
            connection = sqlite.connect_readonly(self.path, immutable=True)
            self._check_format(connection)
        return connection

    def _check_format(self, connection: sqlite3.Connection) -> None:
        format_number = connection.execute("PRAGMA user_version").fetchone()[0]
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        if mark != _APPLICATION or format_number > FORMAT:
            connection.close()
            raise MedtestError(
                f"{self.path.parent.name}/{INDEX} has format {format_number}, which this version of medtest "
                f"does not read (it reads {FORMAT})."
            )

    def close(self) -> None:
        """Close this thread's connection."""
        cached = getattr(self._local, "held", None)
        if cached is not None and cached[0] == os.getpid():
            cached[1].close()
        self._local.held = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that is applied completely or not at all.

        Raises:
            OutputProblem: The disk is full, the folder is read-only, and the like.
        """
        connection = self._connection()
        with _problems(self.path), sqlite.transaction(connection):
            yield connection

    def rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return a query's rows."""
        with _problems(self.path):
            return self._connection().execute(query, values).fetchall()

    # --------------------------------------------------------------------------------------------------- writing

    def add_suite(self, key: str, name: str, version: str, added: str) -> None:
        """Register a suite, or update the time when its follow-ups were last added."""
        with self.transaction() as connection:
            connection.execute(
                "INSERT INTO suites (key, name, version, added) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET name = excluded.name, version = excluded.version, "
                "added = excluded.added",
                (key, name, version, added),
            )

    def add(
        self,
        source_key: str,
        entries: Iterable[tuple[int, Entry]],
        sizes: Iterable[tuple[str, str, int]],
        suite: str,
    ) -> None:
        """Add follow-ups of one source, all of them or none.

        Args:
            source_key: Digest of everything that determines the source.
            entries: (place in the suite's plan, entry) pairs.
            sizes: (kind, SHA-256, bytes) of the files they use.
            suite: Key of a registered suite, or "" for none.
        """
        listed = list(entries)
        if not listed:
            return
        with self.transaction() as connection:
            source = add_source(connection, source_key, listed[0][1])
            connection.executemany(
                "INSERT INTO files (kind, sha256, bytes) VALUES (?, ?, ?) "
                "ON CONFLICT (kind, sha256) DO UPDATE SET bytes = excluded.bytes WHERE bytes != excluded.bytes",
                list(sizes),
            )
            for place, entry in listed:
                number = add_followup(connection, source, entry)
                if suite:
                    connection.execute(
                        "INSERT INTO members (suite, place, followup) "
                        "SELECT id, ?, ? FROM suites WHERE key = ? "
                        "ON CONFLICT (suite, place) DO UPDATE SET followup = excluded.followup",
                        (place, number, suite),
                    )

    # --------------------------------------------------------------------------------------------------- reading

    def suites(self) -> tuple[SuiteEntry, ...]:
        """Return the suites, the most recently extended first."""
        suite_rows = self.rows(
            "SELECT key, name, version, added, (SELECT count(*) FROM members WHERE suite = suites.id) "
            "FROM suites ORDER BY added DESC, id DESC"
        )
        return tuple(SuiteEntry(key=k, name=n, version=v, added=a, entries=e) for k, n, v, a, e in suite_rows)

    def by_key(self, keys: Sequence[str]) -> dict[str, Entry]:
        """Return the follow-ups that exist for these keys."""
        entries: dict[str, Entry] = {}
        for start in range(0, len(keys), _PAGE):
            page = keys[start : start + _PAGE]
            marks = ",".join("?" * len(page))
            for row in self.rows(f"{ENTRY} WHERE f.key IN ({marks})", page):
                entries[row[0]] = entry_of(row)
        return entries

    def members(self, suite: str, first: int, last: int) -> dict[int, Entry]:
        """Return a suite's follow-ups with places from ``first`` to ``last``."""
        query = ENTRY.replace("SELECT ", "SELECT m.place, ", 1) + (
            "JOIN members m ON m.followup = f.id JOIN suites u ON u.id = m.suite "
            "WHERE u.key = ? AND m.place BETWEEN ? AND ?"
        )
        return {row[0]: entry_of(row[1:]) for row in self.rows(query, (suite, first, last))}

    def size(self, kind: str, sha256: str) -> int | None:
        """Return the size in bytes that a file had when it was written, or None."""
        sizes = self.rows("SELECT bytes FROM files WHERE kind = ? AND sha256 = ?", (kind, sha256))
        return int(sizes[0][0]) if sizes else None

    def pages(self, suite: str, where: str, values: Sequence[object]) -> Iterator[list[Entry]]:
        """Yield follow-ups in pages, so that memory use is bounded and readers do not block writers.

        Args:
            suite: A suite's key, for its cases in the order of its plan; "" for everything, in the order of adding.
            where: Further SQL conditions over ``f`` and ``s``, each beginning with AND.
            values: Values of their placeholders.
        """
        if suite:
            head = ENTRY.replace("SELECT ", "SELECT m.place, ", 1)
            query = (
                f"{head} JOIN members m ON m.followup = f.id JOIN suites u ON u.id = m.suite "
                f"WHERE u.key = ? AND m.place > ? {where} ORDER BY m.place LIMIT {_PAGE}"
            )
            fixed: tuple[object, ...] = (suite,)
        else:
            head = ENTRY.replace("SELECT ", "SELECT f.id, ", 1)
            query = f"{head} WHERE f.id > ? {where} ORDER BY f.id LIMIT {_PAGE}"
            fixed = ()
        last = -1
        while rows := self.rows(query, (*fixed, last, *values)):
            last = int(rows[-1][0])
            yield [entry_of(row[1:]) for row in rows]

    def count(self, suite: str, where: str, values: Sequence[object]) -> int:
        """Return the number of follow-ups that :meth:`pages` would yield."""
        join = "FROM followups f JOIN sources s ON s.id = f.source"
        if suite:
            query = (
                f"SELECT count(*) {join} JOIN members m ON m.followup = f.id "
                f"JOIN suites u ON u.id = m.suite WHERE u.key = ? {where}"
            )
            return int(self.rows(query, (suite, *values))[0][0])
        return int(self.rows(f"SELECT count(*) {join} WHERE 1 {where}", values)[0][0])


@contextmanager
def _problems(path: Path) -> Iterator[None]:
    """Convert SQLite's errors to medtest's."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OutputProblem(
            f"{path.parent.name}/{path.name} cannot be used: {error}. "
            "Finished results are kept; run the same command again to continue."
        ) from error
    except sqlite3.DatabaseError as error:
        raise MedtestError(
            f"{path.parent.name}/{path.name} is damaged ({error}). Move it away and make the follow-ups again: "
            "existing pictures are reused."
        ) from error
