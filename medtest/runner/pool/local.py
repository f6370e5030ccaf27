"""Worker in the calling program's own process, for systems that cannot leave it."""

from __future__ import annotations

import queue
import threading
from typing import Any

import cv2

from medtest.runner.pool.child import session_of
from medtest.runner.pool.messages import Begin, Gone, Job, Message
from medtest.runner.pool.worker import Worker

_PATIENCE = 5.0
"""Seconds to wait for the end of a call before abandoning it."""


class LocalWorker(Worker):
    """Worker in a thread: its calls cannot be killed, so it has no deadline.

    A kill lets the current call finish and starts nothing further. It uses as many torch threads as the program.

    Args:
        job: Its job.
        inbox: Takes messages, as in :class:`~medtest.runner.pool.worker.Worker`.
    """

    def _begin(self, job: Job) -> None:
        self._todo: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._killed = False
        self._thread = threading.Thread(target=self._work, args=(job,), name="medtest-local", daemon=True)
        self._thread.start()

    @property
    def deadline(self) -> float | None:
        """None: calls cannot be stopped."""
        return None

    @deadline.setter
    def deadline(self, _: float | None) -> None:
        return

    def _work(self, job: Job) -> None:
        threads = cv2.getNumThreads()
        session = session_of(job)(job, self._deliver, own_process=False)
        try:
            if session.open():
                while not self._killed and (task := self._todo.get()) is not None:
                    session.run(task)
                session.close()
        except _Killed:
            session.close()
        finally:
            cv2.setNumThreads(threads)
            self._inbox.put((self, Gone()))

    def _deliver(self, message: Message) -> None:
        if self._killed:
            raise _Killed
        if not isinstance(message, Begin):  # Begin messages carry a time limit
            self._inbox.put((self, message))

    def _send(self, task: Any) -> None:
        self._todo.put(task)

    def kill(self) -> None:
        """Prevent further work."""
        self._killed = True
        self._todo.put(None)

    def end(self, *, patience: float = 0.0) -> None:
        """Wait for the current call to end."""
        self._thread.join(timeout=max(patience, _PATIENCE))

    def death(self) -> str:
        """Describe how it ended."""
        return "ended"

    def last_words(self) -> str:
        """Return nothing: its output goes to the program's output."""
        return ""


class _Killed(BaseException):
    """Raised to end the work between two batches."""
