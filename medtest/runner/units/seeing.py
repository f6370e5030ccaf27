"""Separate processes for slow readers, with a bounded queue, and separate blame for their failures.

A system may draw pictures faster or slower than a reader reads them. Answers wait in a bounded queue, so that a slow
reader slows the asking down instead of filling the memory. A reader that hangs is killed after ``batch_seconds`` and
one that dies is replaced; its contents are then read one by one, and a content on which it alone hangs or dies is an
ERROR of the cases with that content, not of the system.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from medtest.core.errors import MedtestError
from medtest.readers.base import KeptReader, Unreadable
from medtest.runner.pool.messages import Device, Failed, Gone, Job, Ready, TaskResult
from medtest.runner.pool.process_worker import ProcessWorker
from medtest.runner.pool.worker import Worker, end_all
from medtest.runner.units.made_case import describe

_POLL_SECONDS = 0.2
_AHEAD = 2
"""Batches per process at a time, so that the next one is ready when one is done."""
_BATCHES_WAITING = 4
"""Batches in the queue per process."""
_FAILED_STARTS = 3
_OPEN_SECONDS = 600.0
_END_SECONDS = 2.0
SESSION = "medtest.runner.units.seeing:ReadingSession"


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Task of a reading process.

    Attributes:
        index: Its number.
        contents: Contents to read.
    """

    index: int
    contents: tuple[Any, ...]


class ReadingSession:
    """Session of a reading process, which opens the suite's reader and reads.

    Args:
        job: Its job.
        send: Sends a message through the pipe.
    """

    def __init__(self, job: Job, send: Callable[[Any], None]) -> None:
        self._job, self._send = job, send
        self._reader: KeptReader[Any, Any] | None = None

    def open(self) -> bool:
        """Load the reader; on failure report the reason and return False."""
        job = self._job
        try:
            reader = job.suite.build_reader()
            if reader is None:
                raise MedtestError("the suite's oracle needs no reader")
            reader.keep_in(Path(folder) for folder in job.folders)
            self._reader = KeptReader(reader, shared=None)
            self._reader.open(device=job.device, threads=job.threads)
        except Exception as error:  # noqa: BLE001 - the reader may come from a plug-in
            expected = isinstance(error, MedtestError)
            message = str(error) if expected else f"The suite's reader cannot be loaded: {describe(error)}"
            self._send(Failed(MedtestError(message)))
            return False
        self._send(Ready())
        return True

    def run(self, task: ReadTask) -> None:
        """Read a batch."""
        if self._reader is not None:
            self._send(TaskResult(task.index, tuple(self._reader.facts(task.contents))))

    def close(self) -> None:
        """Release the reader's resources."""
        if self._reader is not None:
            self._reader.close()


class ReadingStage:
    """Reading stage for cases that wait for their facts.

    Args:
        reader: The suite's reader, with its earlier results; not opened in this process.
        job: Job of the worker that this stage belongs to.
        device: Device of the reader.
        processes: Number of processes.
        fail: Called if the reader cannot be loaded at all, which ends the run.
    """

    def __init__(
        self,
        reader: KeptReader[Any, Any],
        job: Job,
        *,
        device: str,
        processes: int,
        fail: Callable[[Exception], None],
    ) -> None:
        self._kept, self._fail = reader, fail
        self._job = replace(job, session=SESSION, device=device)
        self._seconds = job.batch_seconds
        self._most = processes
        self._at_once = max(1, reader.reader.at_once)
        self._room = threading.Semaphore(processes * self._at_once * _BATCHES_WAITING)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Any, ...]] = deque()
        self._open: dict[Any, list[Callable[[Any], None]]] = {}
        self._inbox: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._workers: list[Worker] = []
        self._given: dict[int, tuple[Worker, tuple[Any, ...]]] = {}
        self._next = 0
        self._lost = 0
        self._problem = ""
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="readers", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """True if anything is being read."""
        return bool(self._open)

    def submit(self, content: Any, callback: Callable[[Any], None]) -> None:
        """Submit a content for reading; waits while the queue is full.

        Args:
            content: The content.
            callback: Called once, from another thread, with the facts or an :class:`~medtest.readers.base.Unreadable`.
        """
        facts = self._kept.known(content)
        if facts is None:
            self._room.acquire()
            with self._lock:
                if content in self._open:
                    self._room.release()  # another case already waits for it
                else:
                    self._waiting.append((content,))
                    self._inbox.put((None, None))  # wakes the stage
                self._open.setdefault(content, []).append(callback)
            return
        callback(facts)

    def close(self) -> None:
        """Give up current reading, and end all processes."""
        self._ended = True
        self._inbox.put((None, None))
        self._thread.join()

    # ------------------------------------------------------------------------------------------- thread of the stage

    def _run(self) -> None:
        try:
            while not self._ended:
                self._wait()
                self._kill_overdue()
                if self._problem:
                    self._give_up()
                else:
                    self._hand_out()
        except Exception as error:  # noqa: BLE001 - nothing would be read any more, and cases waited for without end
            self._problem = describe(error)
            self._fail(error if isinstance(error, MedtestError) else MedtestError(self._problem))
            self._give_up()
        finally:
            for worker in self._workers:
                worker.retire()
            end_all(self._workers, patience=_END_SECONDS)

    def _idle(self) -> Worker | None:
        """Return a process that can take a batch; start one if more are allowed."""
        free = [worker for worker in self._workers if len(worker.tasks) < _AHEAD]
        best = min(free, key=lambda worker: len(worker.tasks), default=None)
        if (best is None or best.tasks) and len(self._workers) < self._most:
            best = ProcessWorker(self._job, self._inbox)
            best.deadline = time.monotonic() + _OPEN_SECONDS
            self._workers.append(best)
        return best

    def _hand_out(self) -> None:
        while True:
            with self._lock:
                worker = self._idle() if self._waiting else None
                if worker is None:
                    return
                batch = self._batch()
            index, self._next = self._next, self._next + 1
            self._given[index] = (worker, batch)
            if worker.ready and not worker.tasks:
                worker.deadline = time.monotonic() + self._seconds
            worker.give(ReadTask(index, batch))

    def _batch(self) -> tuple[Any, ...]:
        """Take a batch of contents from the queue; a content of a lost batch is read alone."""
        first = self._waiting.popleft()
        if len(first) == 0:  # marks a content to be read alone
            return self._waiting.popleft()
        batch = list(first)
        while self._waiting and self._waiting[0] and len(batch) < self._at_once:
            batch += self._waiting.popleft()
        return tuple(batch)

    def _wait(self) -> None:
        """Wait for messages of the processes, and for new contents."""
        seconds = _POLL_SECONDS
        while True:
            try:
                worker, message = self._inbox.get(timeout=seconds)
            except queue.Empty:
                return
            seconds = 0.0
            if worker is not None:
                self._take(worker, message)

    def _take(self, worker: Worker, message: Any) -> None:
        match message:
            case Ready():
                worker.ready = True
                self._lost = 0
                worker.deadline = time.monotonic() + self._seconds if worker.tasks else None
            case TaskResult():
                worker.finished(message.index)
                worker.deadline = time.monotonic() + self._seconds if worker.tasks else None
                _, batch = self._given.pop(message.index)
                for content, facts in zip(batch, message.content, strict=True):
                    self._settle(content, facts)
            case Failed():
                self._problem = str(message.error)
                self._fail(message.error)
            case Gone():
                self._gone(worker)
            case Device():
                pass

    def _gone(self, worker: Worker) -> None:
        """Handle the loss of a process: its contents are read one by one; a content that was alone is to blame."""
        death = worker.doomed or f"the reader's process {worker.death()}"
        words = worker.last_words()
        first = worker.tasks[0].index if worker.tasks else -1
        self._workers.remove(worker)
        worker.end()
        if not worker.ready:
            self._lost += 1
            if self._lost >= _FAILED_STARTS and not self._problem:
                self._problem = f"The suite's reader cannot be loaded: {death}{f': {words}' if words else ''}"
                self._fail(MedtestError(self._problem))
        for index in [index for index, (owner, _) in self._given.items() if owner is worker]:
            _, batch = self._given.pop(index)
            if worker.ready and index == first and len(batch) == 1:
                self._settle(batch[0], Unreadable(death))
                continue
            was_alone = worker.ready and index == first
            with self._lock:
                for content in reversed(batch):
                    self._waiting.extendleft([(content,), ()] if was_alone else [(content,)])

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.deadline is not None and now > worker.deadline and not worker.doomed:
                seconds = self._seconds if worker.ready else _OPEN_SECONDS
                worker.doomed = f"the reader gave no answer within {seconds:g} s"
                worker.kill()

    def _settle(self, content: Any, facts: Any) -> None:
        if not isinstance(facts, Unreadable):
            self._kept.keep(content, facts)
        with self._lock:
            callbacks = self._open.pop(content, [])
        self._room.release()
        for callback in callbacks:
            callback(facts)

    def _give_up(self) -> None:
        """Report to all waiting cases that nothing can be read."""
        with self._lock:
            contents = list(self._open)
            self._waiting.clear()
        self._given.clear()
        for content in contents:
            self._settle(content, Unreadable(self._problem))
