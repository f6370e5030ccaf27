"""What readers give back: facts of contents, for records and for views; part of :mod:`medtest.readers.base`."""

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
"""Column of records under a view that says what a second reader read, and what stands there; no record holds it."""
FILE = "readings.sqlite"
"""Facts by content, in the folder that all runs share."""


@dataclass(frozen=True, kw_only=True)
class ReadingJob:
    """Where and how records are read anew.

    Attributes:
        folder: The folder of a system's run, locked by the run.
        shared: The folder that all runs share.
        cache: ``use``, ``refresh`` or ``off``: whether what was read before is taken.
        device: ``cpu`` or ``cuda:N``.
        threads: Intra-op threads.
        stopping: Called when the user stops it.
        progress: Is told how far it is, perhaps from a thread of its own.
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
    """What a reader made of what the records of a system hold.

    Attributes:
        reader: Its name.
        recorded: Returns the content of a record that it reads, or None.
        columns: What a record of each content then holds, by :func:`content_key`.
        found: Facts by content, where tables show them one by one; what was not read is missing.
        marks: Whether what it read is marked in the column :data:`READ_BY`.
        calls: Calls that were sent for it in this session.
        cost_usd: What the readings cost when they were made, None without a price.
        paid_usd: What of that this session paid; the rest was paid before.
        account: What is to be said of calls that may be billed without an answer, or "".
        about: What tables say of the reader (:meth:`medtest.readers.base.Reader.about`).
        problem: Why something was not read, or "".
        code: What that means for the exit code.
    """

    reader: str
    recorded: Callable[[Mapping[str, Any]], Hashable | None] = field(default=lambda row: None)
    columns: Mapping[str, Texts] = field(default_factory=dict)
    found: Mapping[Any, Any] = field(default_factory=dict)
    marks: bool = False
    calls: int = 0
    cost_usd: float | None = None
    paid_usd: float | None = None
    account: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    code: ExitCode = ExitCode.OK

    def of(self, row: Mapping[str, Any]) -> Texts:
        """Return the columns that a record gets; none where its content was not read."""
        content = self.recorded(row)
        return {} if content is None else self.columns.get(content_key(content), {})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for the facts of a content that the reader broke on."""

    reason: str


def content_key(content: Hashable) -> str:
    """Return what stands for a content in files: its canonical JSON."""
    plain = asdict(content) if is_dataclass(content) and not isinstance(content, type) else content
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)
