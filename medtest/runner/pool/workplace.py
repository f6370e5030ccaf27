"""Where workers live: the one thing about them that whoever hands out work does not decide.

Who gets which seed, who is blamed, what has a time limit and who is replaced is the dispatcher's
(:mod:`medtest.runner.pool.dispatch`), and records are written by the process that holds it. A workplace says how a
worker comes to be, and how many there are. Processes of this machine and a thread of the calling program are here; the
nodes of a cluster are in :mod:`medtest.runner.cluster`.
"""

from __future__ import annotations

from typing import Any

from medtest.runner.pool.layout import Layout, choose_layout, device_is_certain
from medtest.runner.pool.worker import Inbox, Worker


class Workplace:
    """Where workers live.

    Attributes:
        waiting: Tasks that wait beside a worker until it has done the one before.
        notices: Lines for the user.
    """

    waiting: int = 0

    def __init__(self) -> None:
        self.notices: list[str] = []

    @property
    def draws(self) -> bool:
        """Whether pictures of cases can be drawn there: what a worker writes then lies in the run's folder."""
        return True

    def open(self) -> None:
        """Make it ready for workers.

        Raises:
            MedtestError: It cannot be.
        """

    def worker(self, job: Any, inbox: Inbox[tuple[Worker, Any]]) -> Worker:
        """Start a worker; see :class:`~medtest.runner.pool.worker.Worker`."""
        raise NotImplementedError

    def device(self, asked: str, *, needed: bool) -> str | None:
        """Return the device of its workers when that is known before one of them looked, else None.

        Args:
            asked: What the user asked for: ``cpu``, ``cuda:N`` or ``auto``.
            needed: Whether any system cares.
        """
        return device_is_certain(asked, needed=needed)

    def layout(self, *, device: str, units: int, workers: int | None, threads: int | None) -> Layout:
        """Choose how many workers there are, and their threads, as :func:`choose_layout` does for this machine."""
        return choose_layout(device=device, units=units, workers=workers, threads=threads)

    def check(self) -> None:
        """Called several times a second while workers are there.

        Raises:
            MedtestError: Workers cannot live here any more.
        """

    def close(self) -> None:
        """Give back what workers lived in; none is left."""


class LocalProcesses(Workplace):
    """Workers are processes of this machine."""

    def worker(self, job: Any, inbox: Inbox[tuple[Worker, Any]]) -> Worker:
        """Start a process."""
        from medtest.runner.pool.process_worker import ProcessWorker

        return ProcessWorker(job, inbox)


class CallingProcess(Workplace):
    """The worker is a thread of the program that calls: its systems are objects that no other process can have."""

    def worker(self, job: Any, inbox: Inbox[tuple[Worker, Any]]) -> Worker:
        """Start a thread."""
        from medtest.runner.pool.local import LocalWorker

        return LocalWorker(job, inbox)
