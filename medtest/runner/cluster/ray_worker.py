"""A worker on a node of a cluster, seen from the process of the run."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from medtest.api.redact import redact
from medtest.core.errors import MedtestError
from medtest.core.files.by_content import DRAFT
from medtest.runner.cluster.talk import (
    Command,
    Drop,
    Give,
    Heard,
    HostStart,
    KeptFile,
    Kill,
    NodeFacts,
    Open,
    Start,
    WorkerEnded,
    WorkerPlaced,
    WorkerReport,
    WorkerReserved,
)
from medtest.runner.folder import output_problems
from medtest.runner.pool.messages import Failed, Gone, Job, Ready
from medtest.runner.pool.worker import Inbox, Worker


class Home(Protocol):
    """What a worker asks of the cluster on which it lives.

    Attributes:
        outputs: The run's folder of results.
        joined_at: When (``time.monotonic()``) the cluster was joined last.
    """

    outputs: Path
    joined_at: float

    def register(self, worker: RayWorker) -> int:
        """Return a number for a worker, by which the bridge knows it."""

    def forget(self, number: int) -> None:
        """A worker is gone."""

    def tell(self, command: Command) -> None:
        """Tell the bridge something."""

    def works(self) -> None:
        """A worker has loaded its systems."""

    def begin(self, job: Job, facts: NodeFacts) -> HostStart:
        """Return what a worker is told on a node."""


class RayWorker(Worker):
    """A worker process that an actor hosts.

    Args:
        job: What it is for.
        inbox: Takes messages, as of :class:`~medtest.runner.pool.worker.Worker`.
        cluster: Where it lives.

    Attributes:
        reserved: The node that has room for it; "" as long as none has.
        node: The node on which it is there; "" until Ray has started it.
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
        """When it must have sent another message; None until Ray has started it on a node."""
        return self._limit if self.node else None

    @deadline.setter
    def deadline(self, until: float | None) -> None:
        self._limit = until

    @property
    def waits(self) -> float:
        """For how many seconds it has been waiting for a node of this cluster that has room; 0 once one has."""
        if self.reserved or self.node or self._over:
            return 0.0
        return time.monotonic() - max(self._asked, self._cluster.joined_at)

    @property
    def starts(self) -> float:
        """For how many seconds a node has had room for it on which it is not there yet; 0 else."""
        return time.monotonic() - self._reserved_at if self.reserved and not (self.node or self._over) else 0.0

    def _begin(self, job: Job) -> None:
        self._job = job
        self._number = self._cluster.register(self)
        self._cluster.tell(Open(self._number))

    def _send(self, thing: Any) -> None:
        self._cluster.tell(Give(self._number, pickle.dumps(thing)))

    def heard(self, report: WorkerReport) -> None:
        """Take what the bridge says of it; called from the thread that listens to the bridge."""
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
                    message = self._named(pickle.loads(packed))  # noqa: S301 - of our own worker process
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
        """Nothing more is heard of it."""
        with self._lock:
            was_over, self._over = self._over, True
        if not was_over:
            self._inbox.put((self, Gone()))

    def lose(self, death: str) -> None:
        """Take it as gone with what it lived on, and say how, in words."""
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
        self._cluster.tell(Start(self._number, begin))

    def _named(self, message: Any) -> Any:
        if isinstance(message, Failed):
            return replace(message, error=MedtestError(self._on_node(str(message.error))))
        return message

    def _on_node(self, text: str) -> str:
        return f"On the node {self.node or 'that was to be'}: {text}"

    def kill(self) -> None:
        """Have its process killed; the actor too if that is not heard of. One that waits for a node has none."""
        self._cluster.tell(Kill(self._number))
        if not (self.reserved or self.node):
            self._death = "was stopped"
            self.over()

    def end(self, *, patience: float = 0.0) -> None:
        """Give back the actor."""
        until = time.monotonic() + patience
        while not self._over and time.monotonic() < until:
            time.sleep(0.02)
        self._cluster.tell(Drop(self._number))
        self._cluster.forget(self._number)

    def death(self) -> str:
        """Return how it ended, in words."""
        return self._death or "was lost"

    def last_words(self) -> str:
        """Return the end of what it wrote."""
        return self._words


def packed_start(job: Job, facts: NodeFacts, *, kept: str, data: str, cache_bytes: int) -> HostStart:
    """Return what an actor's worker process begins with."""
    return HostStart(
        session=job.session,
        threads=job.threads,
        job=pickle.dumps(job),
        folder=os.getcwd(),
        path=tuple(place or os.getcwd() for place in sys.path),
        whole_path=facts.same_machine,
        kept=kept,
        root=job.data or "",
        data=data,
        cache_bytes=cache_bytes,
    )


def _keep(outputs: Path, file: KeptFile) -> None:
    """Write a file that came from a node to its place below ``outputs``, once its bytes are those that were sent.

    Raises:
        MedtestError: It is another one, its place is elsewhere, or it cannot be written.
    """
    place = PurePosixPath(file.path)
    if place.is_absolute() or ".." in place.parts or hashlib.sha256(file.content).hexdigest() != file.sha256:
        raise MedtestError(f"A node gave back {file.path[:200]!r}, which is not what it kept.")
    path = outputs / place
    with output_problems(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{file.sha256[:8]}{DRAFT}")
        draft.write_bytes(file.content)
        draft.replace(path)
