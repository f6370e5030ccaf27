"""Dispatcher of units to workers, which recovers from any failure of the systems."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from medtest.core.errors import MedtestError
from medtest.runner.pool.blame import Blame
from medtest.runner.pool.layout import Layout
from medtest.runner.pool.messages import (
    SHARED,
    Begin,
    Device,
    Done,
    Failed,
    Gone,
    Halt,
    Job,
    Message,
    PoolTask,
    Ready,
    Spent,
    TaskResult,
    Told,
)
from medtest.runner.pool.worker import Worker, end_all
from medtest.runner.pool.workplace import Workplace
from medtest.runner.reporting.outcome import GIB, Limits

_TICK = 0.2
_STARTS = 3
"""Limit of consecutive workers that die before they are ready."""
HALT_SECONDS = 25.0
"""Seconds for running calls to finish after the run was stopped; Slurm and Kubernetes kill 30 s after SIGTERM."""


class Dispatcher:
    """Dispatcher that runs tasks in worker processes.

    Args:
        job: First message to every worker.
        tasks: The tasks, created on demand.
        batch_seconds: Time limit of one call of a system, of making a batch, of preparing a seed.
        limits: Further limits.
        result: Receives the result of a unit.
        renew: Returns a unit's task again with its unfinished part, or None if nothing is left.
        layout: Returns the layout for the resolved device.
        tick: Called several times a second.
        more: Called when every task is done; returns further tasks, or None.
        told: Receives the progress of a system's calls.
        ahead: Tasks that a worker may have at a time; above 1 only if it works on several at once.
        gently: On a stop, let workers finish running calls (which are paid for) instead of killing them.
        workplace: Location of workers; by default processes of this machine.
        loads: Description of what workers load before they are ready.

    Attributes:
        notices: Lines for the user.
        spent: Systems that stopped before their cases were done.
        device: Device of the systems, once known.
        started: Largest number of simultaneous workers.
        running_seconds: Wall time from the first worker being ready to the last case.
        stop: Set by a signal handler; the run ends at the next safe point.
        halting: True if the run was stopped and waits for running calls.
    """

    def __init__(
        self,
        *,
        job: Job,
        tasks: Iterator[PoolTask],
        batch_seconds: float,
        limits: Limits,
        result: Callable[[Any, int], None],
        renew: Callable[[Any], PoolTask | None],
        layout: Callable[[str], Layout],
        tick: Callable[[], None] = lambda: None,
        more: Callable[[], Iterator[PoolTask] | None] = lambda: None,
        told: Callable[[Told], None] = lambda told: None,
        ahead: int = 1,
        gently: bool = False,
        workplace: Workplace | None = None,
        loads: str = "the systems",
    ) -> None:
        self._job = job
        self._tasks = tasks
        self._again: deque[PoolTask] = deque()
        self._batch_seconds = batch_seconds
        self._limits = limits
        self._result, self._renew, self._choose_layout = result, renew, layout
        self._tick, self._more, self._told = tick, more, told
        self._ahead = ahead
        self._gently = gently
        self._workplace = workplace or Workplace()
        self._loads = loads
        self._inbox: queue.SimpleQueue[tuple[Worker, Message]] = queue.SimpleQueue()
        self._workers: list[Worker] = []
        self._blame = Blame(batch_seconds)
        self._room = ahead + (self._workplace.waiting if ahead == 1 else 0)
        self._bad_starts = 0
        self._wanted = 1
        self._exhausted = False
        self._slept = time.monotonic()
        self._leaks = 0
        self._leaking: set[Worker] = set()
        self.notices: list[str] = []
        self.spent: list[Spent] = []
        self.device = ""
        self.started = 0
        self.layout: Layout | None = None
        self.stop = False
        self.halting = False
        self._running_since: float | None = None
        self.running_seconds = 0.0
        self._asked_for_more = False

    def run(self) -> None:
        """Run every task.

        Raises:
            MedtestError: The systems cannot be loaded, or one cannot answer at all; rows already received were passed
                on.
            KeyboardInterrupt: The user stopped the run; rows already received were passed on.
        """
        try:
            if self._job.device != "auto":
                self._use(self._job.device)
            self._fill()
            while self._workers:
                self._step()
                if self.stop and not self.halting:
                    self._halt()
            if self.halting:
                raise KeyboardInterrupt
        except (KeyboardInterrupt, MedtestError) as error:
            self._drain_rows(HALT_SECONDS if isinstance(error, MedtestError) else 0.0)
            raise
        finally:
            for worker in self._workers:
                worker.kill()
            end_all(self._workers, patience=0.0)

    def _halt(self) -> None:
        """Let workers with running calls finish them; kill the others, which have nothing to lose.

        Raises:
            KeyboardInterrupt: No worker has running calls.
        """
        asking = [w for w in self._workers if self._gently and w.ready and any(not task.lost for task in w.tasks)]
        if not asking:
            raise KeyboardInterrupt
        self.halting = True
        for worker in self._workers:
            if worker in asking:
                worker.give(Halt())
                worker.retire()
                worker.deadline = time.monotonic() + HALT_SECONDS
            else:
                worker.retired = True
                worker.kill()

    def run_later_tasks(self) -> None:
        """Skip the tasks, because none is left, and run the later ones."""
        self._asked_for_more = True
        later_tasks = self._more()
        if later_tasks is not None:
            self._tasks = later_tasks
            self.run()

    def _use(self, device: str) -> None:
        self.device = device
        layout = self._choose_layout(device)
        self.layout = layout
        self._wanted = layout.workers
        self._job = replace(self._job, device=device, threads=layout.threads)

    def _fill(self) -> None:
        """Start workers up to the requested number, as long as there may be work for them."""
        active = sum(not worker.retired for worker in self._workers)
        idle = sum(not worker.tasks and not worker.retired for worker in self._workers)
        while active < self._wanted and (len(self._again) > idle or not self._exhausted):
            worker = self._workplace.worker(self._job, self._inbox)
            worker.deadline = time.monotonic() + self._limits.open_seconds
            self._workers.append(worker)
            active, idle = active + 1, idle + 1
        self.started = max(self.started, active)

    def _step(self) -> None:
        seconds = _TICK
        while True:
            try:
                worker, message = self._inbox.get(timeout=seconds)
            except queue.Empty:
                break
            self._take(worker, message)
            seconds = 0.0
        self._kill_overdue()
        self._workplace.check()
        self._tick()

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        pause = now - self._slept - 10 * _TICK
        self._slept = now
        for worker in self._workers:
            if worker.deadline is None:
                continue
            if pause > 0:  # this process was paused or starved, and perhaps the workers too
                worker.deadline += pause
            if now > worker.deadline:
                worker.doomed = "hung"
                worker.deadline = None
                worker.kill()

    def _take(self, worker: Worker, message: Message) -> None:
        match message:
            case Begin(place=place):
                worker.place = place
                if not self.halting:
                    worker.deadline = None if worker.doomed else time.monotonic() + self._batch_seconds
            case TaskResult(index=index, content=content):
                self._result(content, index)
            case Done():
                self._done(worker, message)
            case Device(device=device):
                if not self.device:
                    self._use(device)
                    self._fill()
            case Ready():
                self._bad_starts = 0
                worker.ready = True
                if self._running_since is None:
                    self._running_since = time.monotonic()
                worker.deadline = None
                self._next(worker)
            case Failed(error=error):
                worker.tasks.clear()
                raise error
            case Spent():
                self.spent.append(message)
            case Told():
                self._told(message)
            case Gone():
                self._handle_death(worker)

    def _next(self, worker: Worker) -> None:
        while len(worker.tasks) < self._room:
            task = self._again.popleft() if self._again else next(self._tasks, None)
            if task is None:
                self._exhausted = True
                if not worker.tasks:
                    worker.deadline = None
                    if not any(w.tasks for w in self._workers):
                        self._all_done()
                return
            if self._ahead > 1 or not worker.tasks:  # otherwise it waits for the task under way
                self._begins(worker)
            worker.give(task)

    def _begins(self, worker: Worker) -> None:
        worker.place = (SHARED, SHARED)
        worker.deadline = time.monotonic() + self._batch_seconds

    def _all_done(self) -> None:
        """Continue with later tasks after every task is done, or end."""
        if not self._asked_for_more:
            self._asked_for_more = True
            if self._running_since is not None:
                self.running_seconds = time.monotonic() - self._running_since
            later_tasks = self._more()
            if later_tasks is not None:
                self._tasks = later_tasks
                self._exhausted = False
                for worker in [w for w in self._workers if w.ready and not w.retired and not w.doomed]:
                    self._next(worker)
                self._fill()
                return
        self._retire_all()

    def _retire_all(self) -> None:
        """Retire all workers when nothing is left and none is busy, including those still loading."""
        for worker in self._workers:
            if worker.retired:
                continue
            if worker.ready:
                worker.deadline = time.monotonic() + 5.0
                worker.retire()
            else:
                worker.retired = True
                worker.kill()

    def _done(self, worker: Worker, message: Done) -> None:
        task = worker.finished(message.index)
        if task is not None and not task.lost:
            self._blame.forget(task.index)
        self.notices += message.errors
        if worker.doomed or self.halting:
            return
        if self._ahead == 1 and worker.tasks:  # the task that waited
            self._begins(worker)
        if worker.first_memory is None:
            worker.first_memory = message.memory
        if message.memory > max(self._limits.worker_bytes, 3 * worker.first_memory):
            self._leaking.add(worker)
        if worker not in self._leaking:
            self._next(worker)
        elif not worker.tasks:  # a worker with several tasks gets no more and finishes its own: no call is lost
            self._replace_leaking(worker, message.memory)

    def _replace_leaking(self, worker: Worker, memory: int) -> None:
        self._leaks += 1
        if self._leaks == 1:
            self.notices.append(
                f"A worker grew to {memory / GIB:.1f} GiB and was replaced: a system under test leaks memory."
            )
        worker.deadline = time.monotonic() + 5.0
        worker.retire()
        self._fill()

    def _handle_death(self, worker: Worker) -> None:
        self._workers.remove(worker)
        self._leaking.discard(worker)
        if worker.vanished and not worker.retired:
            self.notices.append(f"A worker {worker.death()}; its unfinished cases were given to other workers.")
        if self.halting:
            worker.end()
            return
        if worker.retired and not worker.tasks:
            worker.end(patience=1.0)
        else:
            if not worker.tasks and not worker.ready:
                self._handle_failed_start(worker)
            for number, task in enumerate(worker.tasks):
                if task.lost:
                    self.notices.append(f"{task.lost}: the worker {worker.death()}.")
                elif self._ahead == 1 and number:
                    self._reassign(task)  # the task was only waiting
                else:
                    self._reassign(replace(task, given_up=self._blame.given_up(worker, task)))
            worker.end()
        self._fill()
        if self._exhausted and not self._again and not any(w.tasks for w in self._workers):
            self._all_done()

    def _handle_failed_start(self, worker: Worker) -> None:
        if worker.vanished:
            return
        self._bad_starts += 1
        if worker.doomed:
            raise MedtestError(f"{self._loads.capitalize()} were not loaded within {self._limits.open_seconds:g} s.")
        if self._bad_starts >= _STARTS:
            words = worker.last_words()
            raise MedtestError(
                f"A worker that loads {self._loads} {worker.death()}, {_STARTS} times in a row."
                + (f" Its output: {words}" if words and self._job.hash_key is None else "")
            )

    def _reassign(self, task: PoolTask) -> None:
        """Give the unfinished part of a dead worker's task to another worker."""
        renewed = self._renew(task)
        if renewed is not None:
            self._again.append(renewed)
        for worker in self._workers:
            if worker.ready and not worker.tasks and not worker.retired and not worker.doomed and self._again:
                self._next(worker)

    def _drain_rows(self, seconds: float) -> None:
        """Pass on received rows, and for some seconds those that workers are about to send for their current units."""
        busy = [worker for worker in self._workers if seconds and worker.ready and worker.tasks and not worker.doomed]
        for worker in busy:
            worker.retire()
        end = time.monotonic() + seconds
        while True:
            busy = busy if time.monotonic() < end and not self.stop else []
            try:
                worker, message = self._inbox.get(timeout=_TICK if busy else 0.0)
            except queue.Empty:
                if not busy:
                    return
                continue
            if isinstance(message, TaskResult):
                self._result(message.content, message.index)
            elif isinstance(message, Gone | Failed) and worker in busy:
                busy.remove(worker)
