"""Worker on a cluster node as seen from the process of the run."""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from medtest.api.redact import redact
from medtest.core.errors import MedtestError
from medtest.core.files.by_content import DRAFT
from medtest.runner.cluster.talk import (
    BridgeCommand,
    Heard,
    HostStart,
    KeptFile,
    NodeFacts,
    WorkerEnded,
    WorkerPlaced,
    WorkerReport,
    WorkerReserved,
)
from medtest.runner.folder import output_problems
from medtest.runner.pool.messages import Failed, Gone, Job, Ready
from medtest.runner.pool.worker import Inbox, Worker


class Home(Protocol):
    """Interface of the cluster for its workers.

    Attributes:
        outputs: The run's folder of results.
        joined_at: Time (``time.monotonic()``) when the cluster was last joined.
    """

    outputs: Path
    joined_at: float

    def register(self, worker: RayWorker) -> int:
        """Register a worker and return its number for the bridge."""

    def forget(self, number: int) -> None:
        """Remove a worker."""

    def send(self, command: BridgeCommand) -> None:
        """Send a command to the bridge."""

    def works(self) -> None:
        """Record that a worker has loaded its systems."""

    def begin(self, job: Job, facts: NodeFacts) -> HostStart:
        """Return the start message for a worker on a node."""


class RayWorker(Worker):
    """Worker process hosted by an actor.

    Args:
        job: Its job.
        inbox: Takes messages, as in :class:`~medtest.runner.pool.worker.Worker`.
        cluster: The cluster on which it runs.

    Attributes:
        reserved: The node that has room for it; "" if none yet.
        node: The node on which it runs; "" until Ray has started it.
    """

    def __init__(self, job: Job, inbox: Inbox[tuple[Worker, Any]], cluster: Home) -> None:
        self.reserved = ""
        self.node = ""
        self._cluster = cluster
        self._reserved_at = 0.0
        self._lock = threading.Lock()
        self._limit: float | None = None
        self._asked = time.monotonic()
        self._over = False
        self._death, self._words = "", ""
        super().__init__(job, inbox)

    @property
    def deadline(self) -> float | None:
        """Time by which it must have sent another message; None until Ray has started it on a node."""
        return self._limit if self.node else None

    @deadline.setter
    def deadline(self, until: float | None) -> None:
        self._limit = until

    @property
    def waits(self) -> float:
        """Seconds it has been waiting for a node of this cluster with room; 0 once there is one."""
        if self.reserved or self.node or self._over:
            return 0.0
        return time.monotonic() - max(self._asked, self._cluster.joined_at)

    @property
    def starts(self) -> float:
        """Seconds since a node reserved room for it without having started it; otherwise 0."""
        return time.monotonic() - self._reserved_at if self.reserved and not (self.node or self._over) else 0.0

    def _begin(self, job: Job) -> None:
        self._job = job
        self._number = self._cluster.register(self)
        self._cluster.send(BridgeCommand("open", self._number))

    def _send(self, task: Any) -> None:
        self._cluster.send(BridgeCommand("give", self._number, pickle.dumps(task)))

    def heard(self, report: WorkerReport) -> None:
        """Process a report from the bridge; called from the thread that listens to the bridge."""
        if self._over:
            return
        match report:
            case WorkerReserved(node=node):
                self._reserved_at = time.monotonic()
                self.reserved = node or "without a name"
            case WorkerPlaced(facts=facts):
                self._take_place(facts)
            case Heard(messages=messages, files=files):
                try:
                    for file in files:
                        _keep(self._cluster.outputs, file)
                except MedtestError as error:
                    self._inbox.put((self, Failed(error)))
                for packed in messages:
                    message = pickle.loads(packed)  # noqa: S301 - of our own worker process
                    if isinstance(message, Failed):
                        message = replace(message, error=MedtestError(self._on_node(str(message.error))))
                    if isinstance(message, Ready):
                        self._cluster.works()
                    self._inbox.put((self, message))
            case WorkerEnded():
                self._death, self._words = report.death, redact(report.words)
                if report.problem:
                    self._inbox.put((self, Failed(MedtestError(self._on_node(report.problem)))))
                if report.lost:
                    self.vanished = True
                self.over()

    def over(self) -> None:
        """Mark the worker as gone; no further messages follow."""
        with self._lock:
            was_over, self._over = self._over, True
        if not was_over:
            self._inbox.put((self, Gone()))

    def lose(self, death: str) -> None:
        """Mark the worker as lost together with its node, and describe the loss."""
        if not self._over:
            self._death, self.vanished = death, True
            self.over()

    def _take_place(self, facts: NodeFacts) -> None:
        now = time.monotonic()
        if self._limit is not None:
            self._limit += now - self._asked
        self.node = facts.node
        try:
            begin = self._cluster.begin(self._job, facts)
        except MedtestError as error:
            self._inbox.put((self, Failed(error)))
            return
        self._cluster.send(BridgeCommand("start", self._number, begin))

    def _on_node(self, text: str) -> str:
        return f"On the node {self.node or 'that was requested'}: {text}"

    def kill(self) -> None:
        """Kill its process, or the actor if the process does not end. A worker that waits for a node has none."""
        self._cluster.send(BridgeCommand("kill", self._number))
        if not (self.reserved or self.node):
            self._death = "was stopped"
            self.over()

    def end(self, *, patience: float = 0.0) -> None:
        """Return the actor to the cluster."""
        until = time.monotonic() + patience
        while not self._over and time.monotonic() < until:
            time.sleep(0.02)
        self._cluster.send(BridgeCommand("drop", self._number))
        self._cluster.forget(self._number)

    def death(self) -> str:
        """Describe how it ended."""
        return self._death or "was lost"

    def last_words(self) -> str:
        """Return the end of its output."""
        return self._words


def _keep(outputs: Path, file: KeptFile) -> None:
    """Write a file received from a node to its place below ``outputs`` after checking its SHA-256.

    Raises:
        MedtestError: The content differs, the place is outside, or it cannot be written.
    """
    place = PurePosixPath(file.path)
    if place.is_absolute() or ".." in place.parts or hashlib.sha256(file.content).hexdigest() != file.sha256:
        raise MedtestError(f"A node returned {file.path[:200]!r} with other content than it stored.")
    path = outputs / place
    with output_problems(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{file.sha256[:8]}{DRAFT}")
        draft.write_bytes(file.content)
        draft.replace(path)
