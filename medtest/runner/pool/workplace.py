"""Location of workers, independent of the dispatcher.

The dispatcher (:mod:`medtest.runner.pool.dispatch`) assigns seeds, blames, sets time limits and replaces workers, and
its process writes the records. A workplace creates workers and decides how many there are. This module has processes of
this machine and a thread of the calling program; the nodes of a cluster are in :mod:`medtest.runner.cluster`.
"""

from __future__ import annotations

from typing import Any

from medtest.runner.pool.layout import Layout, choose_layout, device_is_certain
from medtest.runner.pool.worker import Inbox, Worker


class Workplace:
    """Workplace of this machine, and base class of others.

    Args:
        in_process: True for a thread of the calling program, whose systems are objects that no other process can have;
            otherwise workers are processes.

    Attributes:
        waiting: Number of tasks queued at a worker behind its current one.
        draws: True if workers can draw pictures: the files they write appear in the run's folder.
        notices: Lines for the user.
    """

    waiting: int = 0
    draws: bool = True

    def __init__(self, *, in_process: bool = False) -> None:
        self.notices: list[str] = []
        self._in_process = in_process

    def open(self) -> None:
        """Prepare the workplace.

        Raises:
            MedtestError: It is unavailable.
        """

    def worker(self, job: Any, inbox: Inbox[tuple[Worker, Any]]) -> Worker:
        """Start a worker; see :class:`~medtest.runner.pool.worker.Worker`."""
        if self._in_process:
            from medtest.runner.pool.local import LocalWorker

            return LocalWorker(job, inbox)
        from medtest.runner.pool.process_worker import ProcessWorker

        return ProcessWorker(job, inbox)

    def device(self, requested: str, *, needed: bool) -> str | None:
        """Return the device of its workers if it is known before a worker has started, else None.

        Args:
            requested: The user's setting: ``cpu``, ``cuda:N`` or ``auto``.
            needed: True if any system depends on it.
        """
        return device_is_certain(requested, needed=needed)

    def layout(self, *, device: str, units: int, workers: int | None, threads: int | None) -> Layout:
        """Choose the number of workers and their threads, as :func:`choose_layout` does for this machine."""
        return choose_layout(device=device, units=units, workers=workers, threads=threads)

    def check(self) -> None:
        """Check the workplace; called several times a second while workers exist.

        Raises:
            MedtestError: The workplace was lost.
        """

    def close(self) -> None:
        """Release the workplace after the last worker."""
