"""Outcome, progress and limits of a run."""

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
    """Limits of a run that users need not know; tests tighten them.

    Attributes:
        shard_seconds: Longest time after its first row at which a shard is closed.
        shard_rows: Number of rows at which a shard is closed.
        open_seconds: Longest time for a worker to load the systems.
        worker_bytes: Resident memory above which a worker is replaced between units, if it also grew threefold.
        send_seconds: Longest time before a worker sends its rows.
        samples: Number of sample strips per system.
    """

    shard_seconds: float = 4.0
    shard_rows: int = 400
    open_seconds: float = 900.0
    worker_bytes: int = 4 * GIB
    send_seconds: float = 0.5
    samples: int = 20


@dataclass(frozen=True, kw_only=True)
class Count:
    """Progress of a run; all numbers are of this invocation and count every system's cases.

    Attributes:
        done: Finished cases, including chosen ones finished by earlier runs.
        total: Chosen cases.
        reused: Cases among ``done`` that an earlier run had finished.
        violations: FAIL verdicts so far.
        errors: ERROR verdicts so far.
        calls: Description of the progress of API calls; "" for other systems.
    """

    done: int
    total: int
    reused: int
    violations: int
    errors: int
    calls: str = ""


class Progress(Protocol):
    """Receiver of a run's progress."""

    def update(self, count: Count) -> None:
        """Receive the progress; called a few times a second at most."""

    def phase(self, name: str) -> None:
        """Receive the name of a phase after all cases have run: "tables", "report", "tracking"."""

    def reading(self, line: str) -> None:
        """Receive a reader's progress; called about twice a second, perhaps from a thread."""

    def close(self) -> None:
        """Handle the end of the run."""


@dataclass(frozen=True, kw_only=True)
class SystemOutcome:
    """Outcome of one system.

    Attributes:
        system: Its id in the suite.
        record_name: Its name in records, folders and tables.
        folder: Folder of its results.
        digest: Digest of everything that determines its records; the folder's name.
        counts: Records by verdict, of the whole folder, including sources.
        cases_executed: Cases run by this invocation.
        cases_reused: Records of the requested cases made by earlier invocations.
        reused_from: Time when the newest of those was written, ISO 8601 in UTC; "" if there are none.
        finished: Records in the folder (n of "n of m").
        planned: Cases of the whole suite (m).
        error_percent: ERROR records and follow-ups whose source failed, per hundred records of the requested cases.
        asked: Cases requested by this invocation.
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
        """Line about reused cases, or ""."""
        if not self.cases_reused:
            return ""
        cases = "case of" if self.cases_reused == 1 else "cases of"
        verb = "is" if self.cases_reused == 1 else "are"
        return f"{self.record_name}: {self.cases_reused:,} finished {cases} {self.reused_from} {verb} used again."

    @property
    def partial(self) -> bool:
        """True if cases of the suite are unfinished."""
        return self.finished < self.planned


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """Outcome of a run.

    Attributes:
        systems: One outcome each, in the suite's order.
        interrupted: True if the user stopped it; finished cases are in shards and the next run resumes.
        device: Device of the systems ("cpu", "cuda:0"); "" if nothing had to run.
        workers: Number of worker processes.
        threads: Threads of each.
        seconds: Wall time.
        running_seconds: Wall time from the first loaded worker to the last case, i.e. the cost of the work itself.
        notices: Lines for the user: seeds left out, workers replaced, results reused.
        asked: The requested cases, if a folder of any system also holds others; otherwise None, and the folders hold
            exactly the requested cases.
        view: Digest of the view of those cases; "" if ``asked`` is None.
        stopped: The most severe exit code of systems that stopped before their cases were done (a budget is reached);
            OK if none did.
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
