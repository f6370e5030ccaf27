"""Answers by content, shared by runs: the same question to the same model is paid for once.

One SQLite file for any number of processes. The key covers provider, model, every generation parameter, prompt,
pictures, seed and repeat (:func:`medtest.api.request.content_key`). Only answers are kept: an error, a refusal, a
content filter's stop, a length stop or a malformed answer is never given out again as if it were one.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import TracebackType

from medtest.api.answer_store import is_whole, opened, outcome_sha256
from medtest.api.request import CallState, Outcome, Source
from medtest.errors import OutputProblem

_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, kept_at REAL NOT NULL, outcome TEXT NOT NULL, sha256 TEXT) WITHOUT ROWID;
"""


class CacheMode(StrEnum):
    """How the cache is used: read and written, written only, or not at all."""

    USE = "use"
    REFRESH = "refresh"
    OFF = "off"


class Cache:
    """The cache in one file.

    Args:
        path: The file; made with its folder where it does not exist and the mode needs it.
        mode: ``use``, ``refresh`` (ask anew and keep the new answer) or ``off``.

    Attributes:
        set_aside: What was wrong with the file that lay there and where it is now, one line; "" where nothing was.

    Raises:
        OutputProblem: The file cannot be used.
    """

    def __init__(self, path: Path | None, mode: CacheMode = CacheMode.USE) -> None:
        self.mode = CacheMode.OFF if path is None else CacheMode(mode)
        self._path = path
        self._db: sqlite3.Connection | None = None
        self.set_aside = ""
        if path is None or self.mode == CacheMode.OFF:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db, self.set_aside = opened(path, _TABLE, ("answers",))
        except (OSError, sqlite3.Error) as error:
            raise OutputProblem(f"the cache {path} cannot be used ({error}); delete it, or say cache=off") from None

    def __enter__(self) -> Cache:
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

    def get(self, key: str, address: str) -> Outcome | None:
        """Return the answer kept whole for this content, as the outcome of this address; it costs nothing now.

        Raises:
            OutputProblem: The file cannot be read.
        """
        if self._db is None or self.mode != CacheMode.USE:
            return None
        with self._used():
            row = self._db.execute("SELECT key, outcome, sha256 FROM answers WHERE key=?", (key,)).fetchone()
        if row is None or not is_whole(row[2], *row[:2]):
            return None
        return Outcome.read(row[1], address=address, key=key, source=Source.CACHE)

    def put(self, outcome: Outcome) -> None:
        """Keep an answer; whatever is no answer is left out.

        Raises:
            OutputProblem: The file cannot be written.
        """
        if self._db is None or outcome.state != CallState.ANSWERED:
            return
        with self._used():
            line = outcome.to_json()
            self._db.execute(
                "INSERT OR REPLACE INTO answers (key, kept_at, outcome, sha256) VALUES (?, ?, ?, ?)",
                (outcome.key, time.time(), line, outcome_sha256(outcome.key, line)),
            )

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Turn what the file or its disk refuses into one message: it is no fault of the system under test."""
        try:
            yield
        except sqlite3.Error as error:
            raise OutputProblem(
                f"the cache {self._path} cannot be used ({error}); delete it, or say cache=off, and run the same"
                " command to go on"
            ) from None
