"""Worker processes seen from the parent: start, talk, kill."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from medtest.api.redact import redact
from medtest.runner.pool import processes
from medtest.runner.pool.allocator import keeping_memory
from medtest.runner.pool.messages import Gone, LoadedModules, Place

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_LAST_WORDS = 400

Inbox = queue.SimpleQueue  # of (Worker, Message)


class Worker:
    """One worker process.

    Args:
        job: What it is for, a :class:`~medtest.runner.pool.messages.Job`.
        inbox: Takes ``(self, message)`` for every message, :class:`~medtest.runner.pool.messages.Gone` last.

    Attributes:
        tasks: What it was given and has not finished, in order; more than one where systems answer questions.
        place: What it began last.
        deadline: When (``time.monotonic()``) it must have sent another message; None for no limit.
        doomed: Why it was killed for being too slow, or "".
        ready: Whether its systems are loaded.
        first_memory: Resident bytes after its first task.
    """

    def __init__(self, job: Any, inbox: Inbox[tuple[Worker, Any]]) -> None:
        self.tasks: list[Any] = []
        self.place: Place = (-1, -1)
        self.deadline: float | None = None
        self.doomed = ""
        self.ready = False
        self.retired = False
        self.first_memory: int | None = None
        self._inbox = inbox
        self._begin(job)

    def _begin(self, job: Any) -> None:
        """Start the process and tell it what it is for."""
        self._log = tempfile.TemporaryFile(prefix="medtest-worker-")  # noqa: SIM115 - closed with the worker
        self._process = self._start(job)
        threading.Thread(target=self._read, daemon=True).start()
        self._send(job)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def _start(self, job: Any) -> processes.Process:
        task_read, task_write = os.pipe()
        message_read, message_write = os.pipe()
        try:
            process = processes.start(
                processes.WorkerStart(
                    entry="medtest.runner.pool.child:main",
                    modules=(job.session.partition(":")[0],),
                    environment={
                        **os.environ,
                        **dict.fromkeys(_THREAD_VARIABLES, str(job.threads)),
                        **keeping_memory(os.environ),
                    },
                    tasks=task_read,
                    messages=message_write,
                    log=self._log,
                )
            )
        except BaseException:
            for descriptor in (task_read, task_write, message_read, message_write):
                os.close(descriptor)
            raise
        os.close(task_read)
        os.close(message_write)
        self._tasks = Connection(task_write, readable=False)
        self._messages = Connection(message_read, writable=False)
        return process

    def _read(self) -> None:
        with self._messages as pipe:
            while True:
                try:
                    message = pipe.recv()
                except (EOFError, OSError):
                    break
                if isinstance(message, LoadedModules):
                    self._process.loaded(message.modules)
                else:
                    self._inbox.put((self, message))
        self._inbox.put((self, Gone()))

    def _send(self, thing: Any) -> None:
        with suppress(OSError):  # it is gone, which its closing pipe reports
            self._tasks.send(thing)

    def give(self, task: Any) -> None:
        """Hand it a task."""
        self.tasks.append(task)
        self._send(task)

    def finished(self, index: int) -> Any:
        """Take the task of this number from those it is busy with and return it; None where there is none."""
        for place, task in enumerate(self.tasks):
            if task.index == index:
                return self.tasks.pop(place)
        return None

    def retire(self) -> None:
        """Let it close its systems and end; it is not waited for here."""
        self.retired = True
        self._send(None)

    def kill(self) -> None:
        """Kill it and whatever it started."""
        self._process.kill()

    def end(self, *, patience: float = 0.0) -> None:
        """Wait for its end, kill it when that takes longer than ``patience`` seconds, and free what it held."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=patience)
        self.kill()
        self._process.wait()
        self._process.close()
        self._tasks.close()
        self._log.close()

    def death(self) -> str:
        """Return how it ended, in words, once it has."""
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        if code < 0:
            return f"was killed by {_signal_name(-code)}"
        return f"ended with exit code {code}"

    def last_words(self) -> str:
        """Return the end of what it wrote to its standard output and error, as it may be shown."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - _LAST_WORDS))
        return redact(self._log.read().decode(errors="replace").strip())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_all(workers: list[Worker], *, patience: float) -> None:
    """End workers together."""
    until = time.monotonic() + patience
    for worker in workers:
        worker.end(patience=max(0.0, until - time.monotonic()))
