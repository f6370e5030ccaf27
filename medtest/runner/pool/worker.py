"""A worker seen from the one who hands it tasks, wherever it lives: start, talk, kill."""

from __future__ import annotations

import queue
import time
from abc import ABC, abstractmethod
from typing import Any

from medtest.runner.pool.messages import Place

Inbox = queue.SimpleQueue  # of (Worker, Message)


class Worker(ABC):
    """One worker: a process of this machine, a thread of this process, a process of another machine.

    Args:
        job: What it is for, a :class:`~medtest.runner.pool.messages.Job`.
        inbox: Takes ``(self, message)`` for every message, :class:`~medtest.runner.pool.messages.Gone` last.

    Attributes:
        tasks: What it was given and has not finished, in order; more than one where systems answer questions, or where
            the next waits beside it.
        place: What it began last.
        deadline: When (``time.monotonic()``) it must have sent another message; None for no limit.
        doomed: Why it was killed for being too slow, or "".
        ready: Whether its systems are loaded.
        retired: It is to end and gets nothing further.
        vanished: What it lived on is gone, which nothing that it did is to blame for.
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
        """Start it and tell it what it is for."""

    @abstractmethod
    def _send(self, thing: Any) -> None:
        """Let it have a task, or None: that no other will come."""

    @abstractmethod
    def kill(self) -> None:
        """Kill it and whatever it started."""

    @abstractmethod
    def end(self, *, patience: float = 0.0) -> None:
        """Wait for its end, kill it when that takes longer than ``patience`` seconds, and free what it held."""

    @abstractmethod
    def death(self) -> str:
        """Return how it ended, in words, once it has."""

    @abstractmethod
    def last_words(self) -> str:
        """Return the end of what it wrote to its standard output and error, as it may be shown."""

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


def end_all(workers: list[Worker], *, patience: float) -> None:
    """End workers together."""
    until = time.monotonic() + patience
    for worker in workers:
        worker.end(patience=max(0.0, until - time.monotonic()))
