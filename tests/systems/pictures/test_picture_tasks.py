"""Services that answer later: a task is in the ledger before it is polled, and is paid for once in spite of kills."""

from __future__ import annotations

import json
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from exchanges import PNG, SHA256, Vendor, ask, call, make_system, opened, output
from forked_program import Program, command

from medtest.api.budget import BudgetReached
from medtest.api.store.ledger import Ledger
from medtest.systems.answering.asking import BudgetLimits
from medtest.systems.pictures.services import DashScope

CHILD = Path(__file__).with_name("drawing_child.py")


class Wan(Vendor):
    """A service whose tasks finish when the test decides.

    Attributes:
        begun: Prompt of every task by its id; each was paid for.
        polls: Number of polls of each task.
        done: Whether tasks are done.
        says: Function that returns status and body of a poll of an unfinished task.
    """

    def __init__(self) -> None:
        super().__init__([])
        self.begun: dict[str, str] = {}
        self.polls: dict[str, int] = {}
        self.done = threading.Event()
        self.says: Callable[[str], tuple[int, Any]] = lambda task: (
            200,
            {"output": {"task_id": task, "task_status": "RUNNING"}},
        )
        self.at_first_poll: Callable[[str], None] = lambda task: None

    def reply(
        self, method: str, path: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Return a task's id, its state, or the picture."""
        self.requests.append(f"{method} {path}")
        kind = {"content-type": "application/json"}
        if path.startswith("/files/"):
            return 200, {"content-type": "image/png"}, PNG
        if method == "POST":
            task = f"task-{len(self.begun)}"
            self.begun[task] = json.loads(content)["input"]["prompt"]
            return 200, kind, json.dumps({"output": {"task_id": task, "task_status": "PENDING"}}).encode()
        task = path.rpartition("/")[2]
        self.polls[task] = self.polls.get(task, 0) + 1
        if self.polls[task] == 1:
            self.at_first_poll(task)
        if not self.done.is_set():
            status, body = self.says(task)
            return status, kind, json.dumps(body).encode() if not isinstance(body, bytes) else body
        result = {"url": f"{self.base}/files/{task}.png"}
        reply = {"output": {"task_id": task, "task_status": "SUCCEEDED", "results": [result]}}
        return 200, kind, json.dumps(reply).encode()


@contextmanager
def serving() -> Iterator[Wan]:
    vendor = Wan()
    vendor.start()
    try:
        yield vendor
    finally:
        vendor.stop()


def tasks_of(ledger: Path) -> set[str]:
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as db:
        return {row[0] for row in db.execute("SELECT task FROM tasks")}


def start_child(folder: Path, vendor: Wan, count: int) -> Program:
    return command(CHILD, folder, vendor.base, str(count))


def test_the_task_is_in_the_ledger_before_it_is_polled(tmp_path: Path) -> None:
    missing: list[str] = []
    with serving() as vendor:

        def look(task: str) -> None:
            if task not in tasks_of(tmp_path / "run" / "ledger.sqlite"):
                missing.append(task)

        vendor.at_first_poll = look
        vendor.done.set()
        answers = [
            output(result)
            for result in ask(make_system(DashScope, vendor), tmp_path, [call(n, f"p{n}") for n in range(6)])
        ]
    assert missing == [] and len(vendor.polls) == len(vendor.begun) == 6
    assert {answer.picture for answer in answers} == {SHA256}
    assert tasks_of(tmp_path / "run" / "ledger.sqlite") == set()  # what has ended is no open task


@pytest.mark.slow
def test_after_a_kill_tasks_are_polled_and_not_paid_for_again(tmp_path: Path) -> None:
    with serving() as vendor:
        child = start_child(tmp_path, vendor, 4)
        until = time.monotonic() + 60
        while len(vendor.polls) < 4 and child.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        assert len(vendor.begun) == 4
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert len(tasks_of(tmp_path / "run" / "ledger.sqlite")) == 4
        vendor.done.set()
        out, _ = (again := start_child(tmp_path, vendor, 4)).communicate(timeout=120)
        assert again.returncode == 0
    answers = [json.loads(line) for line in out.splitlines()]
    assert sorted(answer[0] for answer in answers) == [0, 1, 2, 3]
    assert all(answer[1:] == ["answered", SHA256, 0.5] for answer in answers)
    assert len(vendor.begun) == 4, "a task was paid for twice"
    with Ledger(tmp_path / "run" / "ledger.sqlite") as ledger:
        totals = ledger.totals()
    assert (totals.calls, totals.answered, totals.lost, totals.billable, totals.outcomes) == (4, 4, 0, 4, 4)
    assert totals.cost_usd == pytest.approx(2.0)


def test_a_call_that_ends_before_its_task_goes_on_with_it(tmp_path: Path) -> None:
    with serving() as vendor:
        threading.Timer(0.6, vendor.done.set).start()
        answer = output(ask(make_system(DashScope, vendor, call_seconds=0.25, attempts=8), tmp_path)[0])
    assert answer.picture == SHA256 and answer.attempts >= 2
    assert len(vendor.begun) == 1
    with Ledger(tmp_path / "run" / "ledger.sqlite") as ledger:
        assert ledger.totals().calls == 1


def test_a_spent_budget_still_collects_paid_tasks(tmp_path: Path) -> None:
    priced = {"prices": {"m": {"picture": 0.5}}, "call_seconds": 0.2, "attempts": 1}
    with serving() as vendor:
        limits = BudgetLimits(max_usd=0.5)
        first = output(ask(make_system(DashScope, vendor, **priced), tmp_path, budget=limits)[0])
        assert isinstance(first, str) and "no whole answer" in first
        vendor.done.set()
        with opened(make_system(DashScope, vendor, **priced), tmp_path, budget=limits) as system:
            (second,) = system.ask(iter([call()]))
            assert output(second).picture == SHA256
        with (
            opened(make_system(DashScope, vendor, **priced), tmp_path, budget=limits) as system,
            pytest.raises(BudgetReached),
        ):
            list(system.ask(iter([call(1, "another")])))
    assert len(vendor.begun) == 1


@pytest.mark.parametrize(
    "says",
    [
        (500, {"message": "internal"}),
        (429, {"code": "Throttling", "message": "slow down"}),
        (200, b'{"output": {"task_id": "ta'),
        (200, b"<html>"),
    ],
)
def test_failing_polls_end_nothing(tmp_path: Path, says: tuple[int, Any]) -> None:
    with serving() as vendor:
        vendor.says = lambda task: says
        threading.Timer(0.2, vendor.done.set).start()
        answer = output(ask(make_system(DashScope, vendor), tmp_path)[0])
    assert answer.picture == SHA256 and answer.attempts == 1 and len(vendor.begun) == 1


def test_a_task_that_the_service_forgot_is_started_again(tmp_path: Path) -> None:
    with serving() as vendor:
        vendor.says = lambda task: (
            (404, {"code": "NotFound"}) if task == "task-0" else (vendor.done.set(), (500, {}))[1]
        )
        answer = output(ask(make_system(DashScope, vendor), tmp_path)[0])
    assert answer.picture == SHA256 and len(vendor.begun) == 2


def test_tasks_are_polled_at_a_bounded_pace(tmp_path: Path) -> None:
    with serving() as vendor:
        threading.Timer(1.2, vendor.done.set).start()
        ask(make_system(DashScope, vendor, poll_seconds=0.1), tmp_path)
    # 0, 0.1, 0.25, 0.475, 0.81, 1.32: pauses grow by half, up to five times the first.
    assert 4 <= vendor.polls["task-0"] <= 7
