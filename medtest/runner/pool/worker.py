"""Worker as seen by the dispatcher, regardless of its location: start, talk, kill."""

from __future__ import annotations

import queue
import time
from abc import ABC, abstractmethod
from typing import Any

from medtest.runner.pool.messages import Place

Inbox = queue.SimpleQueue  # of (Worker, Message)


class Worker(ABC):
    """One worker: a process of this machine, a thread of this process, or a process of another machine.

    Args:
        job: Its job, a :class:`~medtest.runner.pool.messages.Job`.
        inbox: Takes ``(self, message)`` for every message, :class:`~medtest.runner.pool.messages.Gone` last.

    Attributes:
        tasks: Its unfinished tasks, in order; more than one if systems answer questions, or if the next task is queued.
        place: The place it began last.
        deadline: Time (``time.monotonic()``) by which it must have sent another message; None for no limit.
        doomed: Reason why it was killed for being too slow, or "".
        ready: True if its systems are loaded.
        retired: True if it gets nothing further and ends.
        vanished: True if its machine is gone, for which no task is to blame.
        first_memory: Resident bytes after its first task.
    """

    def __init__(self, job: Any, inbox: Inbox[tuple[Worker, Any]]) -> None:
        self.tasks: list[Any] = []
        self.place: Place = (-1, -1)
        self.deadline: float | None = None
        self.doomed = ""
        self.ready = False
        self.retired = False
        self.vanished = False
        self.first_memory: int | None = None
        self._inbox = inbox
        self._begin(job)

    @abstractmethod
    def _begin(self, job: Any) -> None:
        """Start it with its job."""

    @abstractmethod
    def _send(self, task: Any) -> None:
        """Send it a task, or None after the last one."""

    @abstractmethod
    def kill(self) -> None:
        """Kill it and its children."""

    @abstractmethod
    def end(self, *, patience: float = 0.0) -> None:
        """Wait for its end, kill it after ``patience`` seconds, and release its resources."""

    @abstractmethod
    def death(self) -> str:
        """Describe how it ended."""

    @abstractmethod
    def last_words(self) -> str:
        """Return the end of its standard output and error, with private texts removed."""

    def give(self, task: Any) -> None:
        """Give it a task."""
        self.tasks.append(task)
        self._send(task)

    def finished(self, index: int) -> Any:
        """Remove a task by its number from the unfinished ones and return it; None if it is not there."""
        for place, task in enumerate(self.tasks):
            if task.index == index:
                return self.tasks.pop(place)
        return None

    def retire(self) -> None:
        """Let it close its systems and end, without waiting."""
        self.retired = True
        self._send(None)


def end_all(workers: list[Worker], *, patience: float) -> None:
    """End several workers together."""
    until = time.monotonic() + patience
    for worker in workers:
        worker.end(patience=max(0.0, until - time.monotonic()))
