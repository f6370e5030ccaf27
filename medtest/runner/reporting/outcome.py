"""What a run gives back to whoever started it, and the bounds it runs under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from medtest.core.errors import ExitCode
from medtest.runner.records.case_set import CaseSet

GIB = 1024**3


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of a run that no user needs to know of and tests tighten.

    Attributes:
        shard_seconds: A shard is closed at the latest this long after its first row.
        shard_rows: … or when it holds this many rows.
        open_seconds: Time a worker may take to load the systems.
        worker_bytes: Resident memory above which a worker is replaced between units, if it also grew threefold.
        send_seconds: Time a worker may keep rows to itself.
        samples: How many sample strips a system gets.
    """

    shard_seconds: float = 4.0
    shard_rows: int = 400
    open_seconds: float = 900.0
    worker_bytes: int = 4 * GIB
    send_seconds: float = 0.5
    samples: int = 20


@dataclass(frozen=True, kw_only=True)
class Count:
    """Where a run stands, for a progress line; all numbers are of this invocation and count every system's cases.

    Attributes:
        done: Cases finished, those of earlier runs among the chosen ones included.
        total: Cases chosen.
        reused: Cases among ``done`` that an earlier run had finished.
        violations: FAIL verdicts so far.
        errors: ERROR verdicts so far.
        calls: How far the calls of a model over an API are, in words; "" elsewhere.
    """

    done: int
    total: int
    reused: int
    violations: int
    errors: int
    calls: str = ""


class Progress(Protocol):
    """Somebody who wants to know how far a run is."""

    def update(self, count: Count) -> None:
        """Take notice; called a few times a second at most."""

    def phase(self, name: str) -> None:
        """Take notice of what is done when all cases are run: "tables", "report", "tracking"."""

    def reading(self, line: str) -> None:
        """Take notice of how far a reader of the records is; called about twice a second, perhaps from a thread."""

    def close(self) -> None:
        """The run is over."""


@dataclass(frozen=True, kw_only=True)
class SystemOutcome:
    """What became of one system.

    Attributes:
        system: Its id in the suite.
        record_name: Its name in records, folders and tables.
        folder: Where its results lie.
        digest: Digest of what determines its records; the folder's name.
        counts: Records by verdict, of the whole folder, sources included.
        cases_executed: Cases this invocation ran.
        cases_reused: Records of the cases asked for that earlier invocations made.
        reused_from: When the newest of those was written, ISO 8601 in UTC; "" where there is none.
        finished: Records in the folder (n of "n of m").
        planned: Cases of the whole suite (m).
        error_percent: ERROR records and follow-ups whose source failed, per hundred records of the cases asked for.
        asked: Cases that this invocation asked for.
        asked_finished: Records of those.
        notice: The system's own line for the user ("the compact network runs …"), or "".
    """

    system: str
    record_name: str
    folder: Path
    digest: str
    counts: Mapping[str, int]
    cases_executed: int
    cases_reused: int
    reused_from: str
    finished: int
    planned: int
    error_percent: float
    asked: int = 0
    asked_finished: int = 0
    notice: str = ""

    @property
    def reuse(self) -> str:
        """The line that says which cases are used again, or ""."""
        if not self.cases_reused:
            return ""
        cases = "case of" if self.cases_reused == 1 else "cases of"
        are = "is" if self.cases_reused == 1 else "are"
        return f"{self.record_name}: {self.cases_reused:,} finished {cases} {self.reused_from} {are} used again."

    @property
    def partial(self) -> bool:
        """Whether cases of the suite are still to be run."""
        return self.finished < self.planned


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What became of a run.

    Attributes:
        systems: One outcome each, in the suite's order.
        interrupted: The user stopped it; what was finished lies in shards and the next run goes on from there.
        device: Where the systems ran ("cpu", "cuda:0"); "" when nothing had to run.
        workers: Worker processes used.
        threads: Threads of each.
        seconds: Wall time.
        running_seconds: Wall time from the first worker's systems being loaded to the last case; what more work costs.
        notices: Lines the user should read: seeds left out, workers replaced, results reused.
        asked: The cases asked for, where a folder of any system holds others beside them; else None, and what the
            folders hold is what was asked for.
        view: Digest of the view of those cases; "" where ``asked`` is None.
        stopped: The gravest exit code of systems that stopped before their cases were done (a budget is reached);
            OK where none did.
    """

    systems: tuple[SystemOutcome, ...]
    interrupted: bool = False
    device: str = ""
    workers: int = 0
    threads: int = 0
    seconds: float = 0.0
    running_seconds: float = 0.0
    notices: tuple[str, ...] = field(default=())
    asked: CaseSet | None = None
    view: str = ""
    stopped: ExitCode = ExitCode.OK
