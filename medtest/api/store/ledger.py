"""Every call on paper: before it is sent and after it is answered, with tokens and cost, in SQLite.

One file per run. Each entry is one transaction in write-ahead mode, so a killed process loses nothing but the calls
that were under way, and the next one finds them: they are counted as *lost*, since the server may have billed them.
The final outcome of a request is written in the same transaction as the end of its call: there is no moment at which a
call is paid for and its answer not kept. Prompts, pictures and keys are not in here; answers are.

``synchronous=NORMAL`` survives the death of the process at any moment. After a power cut the last entries may be
missing, the file stays sound.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from medtest.api.calls.request import CallState, Outcome, Source
from medtest.api.calls.retry import Reply
from medtest.api.store.answers import is_whole, opened, outcome_sha256
from medtest.core.errors import FolderInUse, OutputProblem

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, address TEXT NOT NULL, key TEXT NOT NULL,
    attempt INTEGER NOT NULL, sent_at REAL NOT NULL, answered_at REAL, status TEXT NOT NULL, http INTEGER,
    trouble TEXT, prompt_tokens INTEGER, completion_tokens INTEGER,
    cost_usd REAL NOT NULL, maybe_billed INTEGER NOT NULL, reason TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS calls_open ON calls (status) WHERE status = 'sent';
CREATE TABLE IF NOT EXISTS outcomes (
    address TEXT NOT NULL, key TEXT NOT NULL, state TEXT NOT NULL, source TEXT NOT NULL, outcome TEXT NOT NULL,
    sha256 TEXT, PRIMARY KEY (address, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tasks (
    address TEXT NOT NULL, key TEXT NOT NULL, task TEXT NOT NULL, call INTEGER NOT NULL, begun_at REAL NOT NULL,
    PRIMARY KEY (address, key)) WITHOUT ROWID;
"""
_NAMES = ("calls", "outcomes", "tasks")
_SETTLE = """UPDATE calls SET answered_at=?, status='answered', http=?, trouble=?, prompt_tokens=?, completion_tokens=?,
    cost_usd=?, maybe_billed=?, reason=? WHERE id=?"""
_ROWS = "SELECT address, key, state, source, outcome, sha256 FROM outcomes"
_LOSE = "UPDATE calls SET status='lost', maybe_billed=1, answered_at=? WHERE"


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """Sums over all sessions of a run.

    Attributes:
        calls: Calls sent.
        answered: Calls to which something came back, errors included.
        lost: Calls under way when their process died or was stopped; the server may have billed them.
        under_way: Calls sent and not answered yet.
        billable: Calls that the server may charge for: answered ones, cut off ones and lost ones.
        doubtful: Of these, calls that brought no answer (resets, cut bodies, time limits, lost): asked, and where it
            was possible asked again, so that they may be billed twice.
        prompt_tokens: As servers counted.
        completion_tokens: As servers counted.
        cost_usd: Known costs plus the expected ones of doubtful calls.
        outcomes: Requests with a final outcome.
    """

    calls: int
    answered: int
    lost: int
    under_way: int
    billable: int
    doubtful: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    outcomes: int


@dataclass(frozen=True, slots=True)
class OpenTask:
    """A task that a service works on, or has done, for a call that brought no answer yet.

    Attributes:
        task: Its id at the service.
        call: Number of the call that began it.
        usd: What the call counts for in the ledger's sums.
    """

    task: str
    call: int
    usd: float


def doubtful_words(path: Path, name: str) -> str:
    """Say how many calls of a ledger may be billed without an answer; "" for none, or where it cannot be read.

    Args:
        path: The ledger's file, held by nobody.
        name: Who was asked.
    """
    if not path.is_file():
        return ""
    try:
        with Ledger(path) as ledger:
            totals = ledger.totals()
    except (FolderInUse, OutputProblem):
        return ""
    if not totals.doubtful:
        return ""
    calls = "call" if totals.calls == 1 else "calls"
    return (
        f"{name}: {totals.doubtful} of {totals.calls} {calls} brought no answer and may be billed"
        f" ({totals.lost} under way when a session ended, {totals.doubtful - totals.lost} cut off)."
    )


class Ledger:
    """The ledger of one run, held by one process at a time.

    Args:
        path: The file; made with its folder where it does not exist.
        wait: Seconds to wait for another process that holds it.

    Attributes:
        lost_before: Calls that earlier processes left under way, found now.
        set_aside: What was wrong with the file that lay there and where it is now, one line; "" where nothing was.

    Raises:
        FolderInUse: Another process holds it.
        OutputProblem: It cannot be opened or is no ledger.
    """

    def __init__(self, path: Path, *, wait: float = 0.0) -> None:
        self.path = path
        self._lock = FileLock(f"{path}.lock", thread_local=False)  # freed by whichever thread closes it
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=wait)
            self._db, self.set_aside = opened(path, _TABLES, _NAMES)
            row = self._db.execute("SELECT COALESCE(MAX(session), 0) + 1 FROM calls").fetchone()
            self.session = int(row[0])
            self._has_tasks = self._db.execute("SELECT 1 FROM tasks LIMIT 1").fetchone() is not None
            self.lost_before = self._db.execute(f"{_LOSE} status='sent'", (time.time(),)).rowcount
        except Timeout:
            raise FolderInUse(f"{path.name} is held by another process; let it end, or stop it") from None
        except (OSError, ValueError, sqlite3.Error) as error:
            self._lock.release()
            raise OutputProblem(f"the ledger {path} cannot be used: {error}") from None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and give it free."""
        self._db.close()
        self._lock.release()

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Turn what the file or its disk refuses into one message: it is no fault of the system under test."""
        try:
            yield
        except sqlite3.Error as error:
            raise OutputProblem(
                f"the ledger {self.path} cannot be used: {error}. What was answered is kept: mend it, and run the"
                " same command to go on."
            ) from None

    def send(self, *, address: str, key: str, attempt: int, expected_usd: float, task: OpenTask | None = None) -> int:
        """Enter a call that is about to be sent and return its number.

        Args:
            address: The request's.
            key: The request's content key.
            attempt: Number of the call for this request, from 1.
            expected_usd: What it is expected to cost at most; stands until the server says otherwise.
            task: The task of an earlier call that is asked after now: that call is under way again, and none is added.

        Raises:
            OutputProblem: It cannot be entered; the call must not be sent.
        """
        with self._using():
            if task is not None:
                again = "UPDATE calls SET status='sent', answered_at=NULL, maybe_billed=1 WHERE id=?"
                self._db.execute(again, (task.call,))
                return task.call
            entered = self._db.execute(
                "INSERT INTO calls (session, address, key, attempt, sent_at, status, cost_usd, maybe_billed)"
                " VALUES (?, ?, ?, ?, ?, 'sent', ?, 1)",
                (self.session, address, key, attempt, time.time(), expected_usd),
            )
        return int(entered.lastrowid or 0)

    def begin_task(self, call: int, address: str, key: str, task: str) -> None:
        """Enter the id of a task that a call has begun, before it is asked after.

        Raises:
            OutputProblem: It cannot be entered.
        """
        self._has_tasks = True
        with self._using():
            self._db.execute(
                "INSERT OR REPLACE INTO tasks (address, key, task, call, begun_at) VALUES (?, ?, ?, ?, ?)",
                (address, key, task, call, time.time()),
            )

    def open_task(self, address: str, key: str) -> OpenTask | None:
        """Return the task that a call for this address and content began and that has not ended; None for none."""
        with self._using():
            row = self._db.execute(
                "SELECT task, call, cost_usd FROM tasks JOIN calls ON calls.id = call"
                " WHERE tasks.address=? AND tasks.key=?",
                (address, key),
            ).fetchone()
        return None if row is None else OpenTask(str(row[0]), int(row[1]), float(row[2]))

    def answer(self, call: int, reply: Reply, *, cost_usd: float, outcome: Outcome | None = None) -> None:
        """Enter what came back, and the request's final outcome with it where there is one: both or neither.

        An ERROR is entered as a call but kept as no outcome: the next session asks again. A task that the call
        began has ended, unless the reply says that it goes on.

        Raises:
            OutputProblem: It cannot be entered.
        """
        with self._using():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._settle(call, reply, cost_usd)
                if not reply.task and self._has_tasks:
                    self._db.execute("DELETE FROM tasks WHERE call=?", (call,))
                if outcome is not None:
                    self._put(outcome)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # SQLite ends some by itself
                    self._db.execute("ROLLBACK")
                raise

    def _settle(self, call: int, reply: Reply, cost_usd: float) -> None:
        self._db.execute(
            _SETTLE,
            (
                time.time(),
                reply.status,
                str(reply.trouble),
                reply.prompt_tokens,
                reply.completion_tokens,
                cost_usd,
                int(reply.maybe_billed),
                reply.reason,
                call,
            ),
        )

    def lose(self, call: int) -> None:
        """Enter that a call was given up under way (the run was stopped)."""
        self._db.execute(f"{_LOSE} id=?", (time.time(), call))

    def keep(self, outcome: Outcome) -> None:
        """Keep an outcome that no call of this run brought (from the cache, or shared with another address).

        Raises:
            OutputProblem: It cannot be kept.
        """
        with self._using():
            self._put(outcome)

    def _put(self, outcome: Outcome) -> None:
        if outcome.state == CallState.ERROR:
            return
        kept = (outcome.address, outcome.key, str(outcome.state), str(outcome.source), outcome.to_json())
        self._db.execute(
            "INSERT OR REPLACE INTO outcomes (address, key, state, source, outcome, sha256) VALUES (?, ?, ?, ?, ?, ?)",
            (*kept, outcome_sha256(*kept)),
        )

    def outcome(self, address: str, key: str) -> Outcome | None:
        """Return the outcome kept for this address and content, None where there is none, or none that is whole."""
        with self._using():
            row = self._db.execute(f"{_ROWS} WHERE address=? AND key=?", (address, key)).fetchone()
        return None if row is None else _outcome(row)

    def outcomes(self) -> Iterator[Outcome]:
        """Return every outcome kept whole, by address."""
        with self._using():
            rows = self._db.execute(f"{_ROWS} ORDER BY address, key").fetchall()
        yield from filter(None, map(_outcome, rows))

    def totals(self) -> LedgerTotals:
        """Return the sums over all sessions."""
        with self._using():
            row = self._db.execute(
                "SELECT COUNT(*), COALESCE(SUM(status='answered'), 0), COALESCE(SUM(status='lost'), 0),"
                " COALESCE(SUM(status='sent'), 0), COALESCE(SUM(maybe_billed), 0),"
                " COALESCE(SUM(maybe_billed AND status != 'sent' AND COALESCE(trouble, '') != 'none'), 0),"
                " COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0),"
                " COALESCE(SUM(cost_usd), 0.0), (SELECT COUNT(*) FROM outcomes) FROM calls"
            ).fetchone()
        calls, answered, lost, open_, billable, doubtful, prompt, completion, cost, outcomes = row
        return LedgerTotals(calls, answered, lost, open_, billable, doubtful, prompt, completion, float(cost), outcomes)


def _outcome(row: tuple[str, str, str, str, str, str | None]) -> Outcome | None:
    """Return the outcome of a row; None where it is not what was written."""
    *kept, sha256 = row
    address, key, _, _, line = kept
    return Outcome.read(line, address=address, key=key, source=Source.LEDGER) if is_whole(sha256, *kept) else None
