"""Ledger of all calls, before sending and after the answer, with tokens and cost, in SQLite.

One file per run. Each entry is one transaction in write-ahead mode, so a killed process loses only the calls in flight,
and the next one finds them: they are counted as *lost*, because the server may have billed them. The final outcome of a
request is written in the same transaction as the end of its call, so that no call is paid for without its answer being
stored. Prompts, pictures and keys are not stored; answers are.

``synchronous=NORMAL`` survives the death of the process at any moment. After a power failure the last entries may be
missing, but the file stays intact.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from medtest.api.calls.request import CallState, Outcome, Source
from medtest.api.calls.retry import Reply
from medtest.api.store.answers import SqliteFile, is_whole, outcome_sha256
from medtest.core.errors import FolderInUse, OutputProblem
from medtest.core.files import sqlite

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
CREATE INDEX IF NOT EXISTS outcomes_key ON outcomes (key);
CREATE TABLE IF NOT EXISTS spares (
    key TEXT PRIMARY KEY, state TEXT NOT NULL, source TEXT NOT NULL, outcome TEXT NOT NULL, sha256 TEXT) WITHOUT ROWID;
"""
_SETTLE = """UPDATE calls SET answered_at=?, status='answered', http=?, trouble=?, prompt_tokens=?, completion_tokens=?,
    cost_usd=?, maybe_billed=?, reason=? WHERE id=?"""
_ROWS = "SELECT address, key, state, source, outcome, sha256 FROM outcomes"
_PAID = """SELECT address, key, COUNT(*), SUM(cost_usd) FROM calls WHERE session < ? AND status = 'answered'
    AND id NOT IN (SELECT call FROM tasks) GROUP BY address, key"""
_LOSE = "UPDATE calls SET status='lost', maybe_billed=1, answered_at=? WHERE"


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """Sums over all sessions of a run.

    Attributes:
        calls: Calls sent.
        answered: Calls with a reply, errors included.
        lost: Calls in flight when their process died or was stopped; the server may have billed them.
        under_way: Calls sent and not answered yet.
        billable: Calls that the server may charge for: answered, cut off and lost ones.
        doubtful: Billable calls without an answer (resets, truncated bodies, time limits, lost); they were repeated if
            possible, so that they may be billed twice.
        prompt_tokens: As counted by servers.
        completion_tokens: As counted by servers.
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
    """Task at a service, running or done, of a call without an answer so far.

    Attributes:
        task: Its id at the service.
        call: Number of the call that started it.
        usd: Cost of the call in the ledger's sums.
    """

    task: str
    call: int
    usd: float


def doubtful_words(path: Path, name: str) -> str:
    """Return a remark on calls that may be billed without an answer; "" for none, or if the ledger is unreadable.

    Args:
        path: The ledger's file, not in use.
        name: Name of the system.
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
        f"{name}: {totals.doubtful} of {totals.calls} {calls} without an answer, possibly billed"
        f" ({totals.lost} in flight when a session ended, {totals.doubtful - totals.lost} cut off)."
    )


class Ledger(SqliteFile):
    """Ledger of one run, held by one process at a time.

    Args:
        path: The file; created with its folder if missing.
        wait: Seconds to wait for another process that holds it.

    Attributes:
        lost_before: Calls that earlier processes left in flight, counted on opening.

    Raises:
        FolderInUse: Another process holds it.
        OutputProblem: It cannot be opened or is not a ledger.
    """

    def __init__(self, path: Path, *, wait: float = 0.0) -> None:
        self._paid: dict[tuple[str, str], tuple[int, float]] | None = None
        self._lock = FileLock(f"{path}.lock", thread_local=False)  # released by whichever thread closes it
        advice = "answers so far are kept; repair the file or its disk, then run the same command again"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=wait)
            super().__init__(path, _TABLES, title="the ledger", advice=advice)
            with self._using():
                row = self._db.execute("SELECT COALESCE(MAX(session), 0) + 1 FROM calls").fetchone()
                self.session = int(row[0])
                self._has_tasks = self._db.execute("SELECT 1 FROM tasks LIMIT 1").fetchone() is not None
                self.lost_before = self._db.execute(f"{_LOSE} status='sent'", (time.time(),)).rowcount
        except Timeout:
            raise FolderInUse(f"{path.name} is held by another process; wait until it ends, or stop it") from None
        except OSError as error:
            raise OutputProblem(f"the ledger {path} cannot be used ({error}): {advice}") from None
        except OutputProblem:
            self._lock.release()
            raise

    def close(self) -> None:
        """Close the file and release the lock."""
        super().close()
        self._lock.release()

    def send(self, *, address: str, key: str, attempt: int, expected_usd: float, task: OpenTask | None = None) -> int:
        """Record a call that is about to be sent and return its number.

        Args:
            address: The request's address.
            key: The request's content key.
            attempt: Number of the call for this request, from 1.
            expected_usd: Its expected maximum cost, valid until the server reports otherwise.
            task: Task of an earlier call to poll now: that call is in flight again, and none is added.

        Raises:
            OutputProblem: It cannot be recorded; the call must not be sent.
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

    def paid_before(self, address: str, key: str) -> tuple[int, float]:
        """Return number and cost of earlier sessions' answered calls for this address and content, errors included.

        They came to an ERROR, or brought a picture that is lost. Calls that were in flight when a session ended, and
        tasks that continue, are not among them.
        """
        if self._paid is None:
            with self._using():
                rows = self._db.execute(_PAID, (self.session,)).fetchall()
            self._paid = {(row[0], row[1]): (int(row[2]), float(row[3])) for row in rows}
        return self._paid.get((address, key), (0, 0.0))

    def begin_task(self, call: int, address: str, key: str, task: str) -> None:
        """Record the id of a task that a call has started, before it is polled.

        Raises:
            OutputProblem: It cannot be recorded.
        """
        self._has_tasks = True
        with self._using():
            self._db.execute(
                "INSERT OR REPLACE INTO tasks (address, key, task, call, begun_at) VALUES (?, ?, ?, ?, ?)",
                (address, key, task, call, time.time()),
            )

    def open_task(self, address: str, key: str) -> OpenTask | None:
        """Return the unfinished task of a call for this address and content, or None."""
        with self._using():
            row = self._db.execute(
                "SELECT task, call, cost_usd FROM tasks JOIN calls ON calls.id = call"
                " WHERE tasks.address=? AND tasks.key=?",
                (address, key),
            ).fetchone()
        return None if row is None else OpenTask(str(row[0]), int(row[1]), float(row[2]))

    def answer(
        self,
        call: int,
        reply: Reply,
        *,
        cost_usd: float,
        outcome: Outcome | None = None,
        spares: Sequence[Outcome] = (),
    ) -> None:
        """Record a reply, together with the request's final outcome and spares if there are any: all or nothing.

        An ERROR is recorded as a call but not as an outcome: the next session sends the request again. A task that the
        call started has ended, unless the reply states that it continues.

        Raises:
            OutputProblem: It cannot be recorded.
        """
        with self._using(), sqlite.transaction(self._db):
            self._settle(call, reply, cost_usd)
            if not reply.task and self._has_tasks:
                self._db.execute("DELETE FROM tasks WHERE call=?", (call,))
            if outcome is not None:
                self._put(outcome)
            for spare in spares:
                self._put_spare(spare)

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
        """Record that a call in flight was abandoned (the run was stopped)."""
        self._db.execute(f"{_LOSE} id=?", (time.time(), call))

    def keep(self, outcome: Outcome) -> None:
        """Store an outcome that no call of this run produced (from the cache, or shared with another address).

        Raises:
            OutputProblem: It cannot be stored.
        """
        with self._using():
            self._put(outcome)

    def _put(self, outcome: Outcome) -> None:
        if outcome.state == CallState.ERROR:
            return
        row = (outcome.address, outcome.key, str(outcome.state), str(outcome.source), outcome.to_json())
        self._db.execute(
            "INSERT OR REPLACE INTO outcomes (address, key, state, source, outcome, sha256) VALUES (?, ?, ?, ?, ?, ?)",
            (*row, outcome_sha256(*row)),
        )

    def _put_spare(self, spare: Outcome) -> None:
        row = (spare.key, str(spare.state), str(spare.source), spare.to_json())
        self._db.execute("INSERT OR REPLACE INTO spares VALUES (?, ?, ?, ?, ?)", (*row, outcome_sha256("", *row)))

    def take_spare(self, address: str, key: str) -> Outcome | None:
        """Return the undamaged answer that waits for this content, now stored as this address's own; None without one.

        Its cost includes that of the calls that earlier sessions made for it in vain.

        Raises:
            OutputProblem: It cannot be stored.
        """
        _, paid_usd = self.paid_before(address, key)
        with self._using(), sqlite.transaction(self._db):
            columns = "'', key, state, source, outcome, sha256"
            row = self._db.execute(f"SELECT {columns} FROM spares WHERE key=?", (key,)).fetchone()  # noqa: S608
            outcome = None if row is None else _outcome(row)
            if row is not None:
                self._db.execute("DELETE FROM spares WHERE key=?", (key,))
            if outcome is not None:
                cost = None if outcome.cost_usd is None else outcome.cost_usd + paid_usd
                outcome = replace(outcome, address=address, source=Source.SHARED, cost_usd=cost)
                self._put(outcome)
        return outcome

    def holds(self, key: str) -> bool:
        """Return True if any address has an outcome for this content, or an answer waits for one."""
        query = "SELECT 1 FROM outcomes WHERE key=? UNION ALL SELECT 1 FROM spares WHERE key=? LIMIT 1"
        with self._using():
            return self._db.execute(query, (key, key)).fetchone() is not None

    def outcome(self, address: str, key: str) -> Outcome | None:
        """Return the undamaged outcome stored for this address and content, or None."""
        with self._using():
            row = self._db.execute(f"{_ROWS} WHERE address=? AND key=?", (address, key)).fetchone()
        return None if row is None else _outcome(row)

    def outcomes(self) -> Iterator[Outcome]:
        """Return every undamaged outcome, by address."""
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
    """Return the outcome of a row; None if it is damaged."""
    *content, sha256 = row
    address, key, _, _, line = content
    return Outcome.read(line, address=address, key=key, source=Source.LEDGER) if is_whole(sha256, *content) else None
