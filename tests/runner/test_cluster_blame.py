"""Blame for tasks whose worker or machine is lost, with scripted workers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from runner_helpers import job_of

from medtest.core.cases import ReasonCode, SeedRef
from medtest.runner.pool.blame import Blame
from medtest.runner.pool.dispatch import Dispatcher
from medtest.runner.pool.layout import Layout
from medtest.runner.pool.messages import Begin, Done, Gone, PoolTask, Ready
from medtest.runner.pool.worker import Inbox, Worker
from medtest.runner.pool.workplace import Workplace
from medtest.runner.reporting.outcome import Limits


class Played(Worker):
    """A worker with scripted messages."""

    instances: list[Played]

    def _begin(self, job: Any) -> None:
        self.sent: list[Any] = []

    def _send(self, thing: Any) -> None:
        self.sent.append(thing)
        if thing is None:  # it was retired
            self.say(Gone())

    def say(self, *messages: Any) -> None:
        for message in messages:
            self._inbox.put((self, message))

    def kill(self) -> None:
        self.say(Gone())

    def end(self, *, patience: float = 0.0) -> None:
        pass

    def death(self) -> str:
        return "was lost with its node" if self.vanished else "was killed by SIGSEGV"

    def last_words(self) -> str:
        return ""


class Stage(Workplace):
    """A workplace of scripted workers: one at a time, with one task waiting."""

    waiting = 1

    def __init__(self, play: Any) -> None:
        super().__init__()
        self.play = play
        self.workers: list[Played] = []

    def worker(self, job: Any, inbox: Inbox[tuple[Worker, Any]]) -> Worker:
        player = Played(job, inbox)
        self.workers.append(player)
        player.say(Ready())
        return player

    def check(self) -> None:
        self.play(self.workers)


def _dispatch(play: Any, tmp_path: Path, count: int = 4) -> tuple[Dispatcher, list[PoolTask]]:
    again: list[PoolTask] = []
    tasks = [PoolTask(index=n, source=0, ref=SeedRef(dataset="d", seed_id=str(n), locator="")) for n in range(count)]
    dispatcher = Dispatcher(
        job=job_of(tmp_path),
        tasks=iter(tasks),
        batch_seconds=60.0,
        limits=Limits(),
        result=lambda rows, unit: None,
        renew=lambda task: again.append(task) or task,
        layout=lambda device: Layout(workers=1, threads=1),
        workplace=Stage(play),
    )
    return dispatcher, again


def test_tasks_behind_a_worker_that_died_are_not_blamed(tmp_path: Path) -> None:
    def play(workers: list[Played]) -> None:
        worker = workers[-1]
        open_tasks = [task for task in worker.tasks if task in worker.sent]
        if len(workers) <= 2 and len(open_tasks) == 2:
            worker.say(Begin(open_tasks[0].index, (0, 0)), Gone())
        elif len(workers) > 2 and open_tasks:
            worker.say(Done(open_tasks[0].index, 1))

    dispatcher, again = _dispatch(play, tmp_path)
    dispatcher.run()
    outcomes = [(task.index, task.given_up) for task in again]
    assert [(index, {*given_up}) for index, given_up in outcomes] == [(0, set()), (1, set()), (0, {(0, 0)}), (1, set())]
    assert outcomes[2][1][0, 0].code == ReasonCode.CRASH and "SIGSEGV" in outcomes[2][1][0, 0].text


def test_a_batch_whose_machine_goes_is_tried_again_and_not_blamed(tmp_path: Path) -> None:
    def play(workers: list[Played]) -> None:
        worker = workers[-1]
        if len(workers) <= 5 and worker.tasks and not worker.vanished:
            worker.vanished = True
            worker.say(Begin(worker.tasks[0].index, (0, 0)), Gone())
        elif len(workers) > 5 and worker.tasks:
            worker.say(Done(worker.tasks[0].index, 1))

    dispatcher, again = _dispatch(play, tmp_path, count=1)
    dispatcher.run()
    assert len(again) == 5
    assert all(task.given_up == {} for task in again)
    assert sum("given to other workers" in notice for notice in dispatcher.notices) == 5


def test_a_batch_that_takes_every_machine_down_is_blamed_in_the_end() -> None:
    blame = Blame(60.0)
    worker: Any = SimpleNamespace(place=(0, 1), doomed="", vanished=True, death=lambda: "was lost with its node")
    task = PoolTask(index=3, source=0, ref=SeedRef(dataset="d", seed_id="3", locator=""))
    verdicts = [blame.given_up(worker, task) for _ in range(12)]
    assert verdicts[:11] == [{}] * 11
    assert {place: reason.code for place, reason in verdicts[11].items()} == {(0, 1): ReasonCode.CRASH}
    blame.forget(3)
    assert blame.given_up(worker, task) == {}
