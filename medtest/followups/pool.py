"""Hands seeds to the processes that make their follow-ups, and outlives what those processes do."""

from __future__ import annotations

import itertools
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from medtest.errors import MedtestError
from medtest.followups.worker import Busy, MakeJob, MakeSession, MakeTask, Started, UnitMade
from medtest.runner.pool.messages import Failed, Gone
from medtest.runner.pool.worker import Worker, end_all

_TICK = 0.2
_OPEN_SECONDS = 300.0
_CRASHES = 2
"""How often a case may take its worker down before it counts as an error."""
_STARTS = 3


class _MakeWorker(Worker):
    """A worker that makes follow-ups and knows no system."""

    entry: ClassVar[str] = "medtest.followups.worker:main"
    modules: ClassVar[tuple[str, ...]] = ("medtest.followups.worker",)


class MakePool:
    """Hands units to worker processes; one that hangs is killed, one that dies is replaced.

    Args:
        job: What every worker is told first.
        tasks: The tasks, made on demand.
        units: Most tasks there can be.
        workers: Processes.
        seconds: The longest that preparing a seed or making one follow-up may take.
        take: Called with every finished unit.
    """

    def __init__(
        self,
        *,
        job: MakeJob,
        tasks: Iterator[MakeTask],
        units: int,
        workers: int,
        seconds: float,
        take: Callable[[UnitMade], None],
    ) -> None:
        self._job = job
        self._tasks = tasks
        self._again: deque[MakeTask] = deque()
        self._wanted = min(workers, units)
        self._seconds = seconds
        self._take_unit = take
        self._inbox: queue.SimpleQueue[tuple[Worker, Any]] = queue.SimpleQueue()
        self._workers: list[Worker] = []
        self._crashes: dict[tuple[int, int], int] = {}
        self._bad_starts = 0
        self.started = 0

    def run(self) -> None:
        """Run every task.

        Raises:
            MedtestError: A worker could not start, or the store not be written.
        """
        first = next(self._tasks, None)
        if first is None:
            return
        self._again.append(first)
        if not self._wanted:
            self._run_here()
            return
        try:
            for _ in range(self._wanted):
                self._start()
            while self._workers:
                self._step()
        finally:
            for worker in self._workers:
                worker.kill()
            end_all(self._workers, patience=0.0)

    def _run_here(self) -> None:
        """Run every task in this process."""
        session = MakeSession(self._job, self._take_here)
        if session.open():
            try:
                for task in itertools.chain(self._again, self._tasks):
                    session.run(task)
            finally:
                session.store.close()

    def _take_here(self, message: Any) -> None:
        if isinstance(message, Failed):
            raise message.error
        if isinstance(message, UnitMade):
            self._take_unit(message)

    def _start(self) -> None:
        worker = _MakeWorker(self._job, self._inbox)
        worker.deadline = time.monotonic() + _OPEN_SECONDS
        self._workers.append(worker)
        self.started = max(self.started, len(self._workers))

    def _step(self) -> None:
        try:
            worker, message = self._inbox.get(timeout=_TICK)
        except queue.Empty:
            pass
        else:
            self._handle(worker, message)
        now = time.monotonic()
        for late in [w for w in self._workers if w.deadline is not None and now > w.deadline]:
            late.deadline = None
            late.doomed = "hung"
            late.kill()

    def _handle(self, worker: Worker, message: Any) -> None:
        match message:
            case Started():
                worker.ready = True
                self._bad_starts = 0
                self._next(worker)
            case Busy(place=place):
                worker.place = (0, place)
                worker.deadline = None if worker.doomed else time.monotonic() + self._seconds
            case UnitMade():
                worker.finished(message.index)
                self._take_unit(message)
                if not worker.doomed:
                    self._next(worker)
            case Failed(error=error):
                raise error
            case Gone():
                self._gone(worker)

    def _next(self, worker: Worker) -> None:
        task = self._again.popleft() if self._again else next(self._tasks, None)
        if task is None:
            worker.deadline = time.monotonic() + _TICK * 25
            worker.retire()
            return
        worker.place = (0, -1)
        worker.deadline = time.monotonic() + self._seconds
        worker.give(task)

    def _gone(self, worker: Worker) -> None:
        self._workers.remove(worker)
        how = worker.death()
        words = worker.last_words()
        worker.end()
        if worker.retired:
            return
        if not worker.tasks:
            self._bad_starts += 1
            if self._bad_starts >= _STARTS:
                raise MedtestError(f"A worker could not start: it {how}. {words}".strip())
        else:
            self._again += [self._blamed(worker, task) for task in worker.tasks]
        self._start()

    def _blamed(self, worker: Worker, task: MakeTask) -> MakeTask:
        """Return a lost task again; a case that hung, or took workers down twice, is given up."""
        place = worker.place[1]
        self._crashes[task.index, place] = self._crashes.get((task.index, place), 0) + 1
        if worker.doomed or self._crashes[task.index, place] >= _CRASHES:
            return replace(task, given_up=task.given_up | {place})
        return task
