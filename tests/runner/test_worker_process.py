"""A worker process and its job."""

from __future__ import annotations

import queue
from typing import Any

from medtest.runner.pool.messages import Gone
from medtest.runner.pool.process_worker import ProcessWorker
from medtest.runner.pool.worker import Inbox, Worker


class Unreadable:
    """A job that can be written and not read: like one whose class is only in the user's main module."""

    threads = 1
    session = "medtest.runner.units.session:Session"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return int, ("no number",)


def test_a_job_that_cannot_be_read_ends_the_worker_with_the_reason() -> None:
    inbox: Inbox[tuple[Worker, Any]] = queue.SimpleQueue()
    worker = ProcessWorker(Unreadable(), inbox)
    try:
        _, message = inbox.get(timeout=60)
        assert isinstance(message, Gone)
        assert worker.death() == "ended with exit code 1"
        assert "no number" in worker.last_words()
    finally:
        worker.end()
