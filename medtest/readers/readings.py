"""Results of readers: facts by content, for records and for views; part of :mod:`medtest.readers.base`."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from medtest.core.errors import ExitCode

Texts = Mapping[str, str | None]
"""Text columns of a record."""

READ_BY, JUDGE = "read_by", "judge"
"""Column added to records in a view: what a second reader read, and its value for the judge; not stored in records."""
FILE = "readings.sqlite"
"""File of facts by content, in the folder shared by all runs."""


@dataclass(frozen=True, kw_only=True)
class ReadingJob:
    """Describes where and how records are read again.

    Attributes:
        folder: The folder of a system's run, locked by the run.
        shared: The folder shared by all runs.
        cache: ``use``, ``refresh`` or ``off``: whether earlier results are used.
        device: ``cpu`` or ``cuda:N``.
        threads: Intra-op threads.
        stopping: Called when the user stops the reading.
        progress: Receives progress lines, possibly from another thread.
    """

    folder: Path
    shared: Path
    cache: str = "use"
    device: str = "cpu"
    threads: int = 1
    stopping: Callable[[], None] = lambda: None
    progress: Callable[[str], None] = lambda line: None


@dataclass(frozen=True, kw_only=True)
class Readings:
    """Result of a reader for the records of a system.

    Attributes:
        reader: Name of the reader.
        recorded: Returns the content of a record for the reader, or None.
        columns: Resulting record columns for each content, by :func:`content_key`.
        facts: Facts by content, if tables show them one by one; unread contents are missing.
        marks: Whether records it has read are marked in the column :data:`READ_BY`.
        calls: Number of calls sent in this session.
        cost_usd: Cost of the readings when they were made, None without a price.
        paid_usd: The part of it paid in this session; the rest was paid before.
        account: Note on calls that may be billed without an answer, or "".
        about: Description of the reader for tables (:meth:`medtest.readers.base.Reader.about`).
        problem: Why something was not read, or "".
        code: The resulting exit code.
    """

    reader: str
    recorded: Callable[[Mapping[str, Any]], Hashable | None] = field(default=lambda row: None)
    columns: Mapping[str, Texts] = field(default_factory=dict)
    facts: Mapping[Any, Any] = field(default_factory=dict)
    marks: bool = False
    calls: int = 0
    cost_usd: float | None = None
    paid_usd: float | None = None
    account: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    code: ExitCode = ExitCode.OK

    def of(self, row: Mapping[str, Any]) -> Texts:
        """Return the new columns of a record; empty if its content was not read."""
        content = self.recorded(row)
        return {} if content is None else self.columns.get(content_key(content), {})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Replaces the facts of a content on which the reader failed."""

    reason: str


def content_key(content: Hashable) -> str:
    """Return the key of a content in files: its canonical JSON."""
    plain = asdict(content) if is_dataclass(content) and not isinstance(content, type) else content
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)
