"""A worker on a node of a cluster, seen from the process of the run."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import time
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from medtest.api.redact import redact
from medtest.errors import MedtestError
from medtest.files.by_content import DRAFT
from medtest.runner.cluster.talk import (
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
)
from medtest.runner.folder import output_problems
from medtest.runner.pool.messages import Failed, Gone, Job
from medtest.runner.pool.worker import Inbox, Worker

if TYPE_CHECKING:
    from medtest.runner.cluster.ray_cluster import RayCluster


class RayWorker(Worker):
    """A worker process that an actor hosts.

    Args:
        job: What it is for.
        inbox: Takes messages, as of :class:`~medtest.runner.pool.worker.Worker`.
        cluster: Where it lives.

    Attributes:
        node: The node on which it is; "" as long as it waits for one.
    """

    def __init__(self, job: Job, inbox: Inbox[tuple[Worker, Any]], cluster: RayCluster) -> None:
        self.node = ""
        self._cluster = cluster
        self._limit: float | None = None
        self._asked = time.monotonic()
        self._over = False
        self._death, self._words = "", ""
        super().__init__(job, inbox)

    @property
    def deadline(self) -> float | None:
        """When it must have sent another message; None as long as no node has room for it."""
        return self._limit if self.node else None

    @deadline.setter
    def deadline(self, until: float | None) -> None:
        self._limit = until

    @property
    def waits(self) -> float:
        """For how many seconds it has been waiting for a node; 0 once it has one."""
        return 0.0 if self.node or self._over else time.monotonic() - self._asked

    def _begin(self, job: Job) -> None:
        self._job = job
        self._number = self._cluster.register(self)
        self._cluster.tell(Open(self._number))

    def _send(self, thing: Any) -> None:
        self._cluster.tell(Give(self._number, pickle.dumps(thing)))

    def heard(self, report: WorkerPlaced | Heard | WorkerEnded) -> None:
        """Take what the bridge says of it; called from the thread that listens to the bridge."""
        match report:
            case WorkerPlaced(facts=facts):
                self._take_place(facts)
            case Heard(messages=messages, files=files):
                try:
                    for file in files:
                        _keep(self._cluster.outputs, file)
                except MedtestError as error:
                    self._inbox.put((self, Failed(error)))
                for packed in messages:
                    self._inbox.put((self, self._named(pickle.loads(packed))))  # noqa: S301 - of our own worker process
            case WorkerEnded():
                self._death, self._words = report.death, redact(report.words)
                if report.problem:
                    self._inbox.put((self, Failed(MedtestError(self._on_node(report.problem)))))
                if report.lost:
                    self.vanished = True
                self.over()

    def over(self) -> None:
        """Nothing more is heard of it."""
        if not self._over:
            self._over = True
            self._inbox.put((self, Gone()))

    def fail(self, error: Exception) -> None:
        """End the run: where it lives is gone."""
        if not self._over:
            self._inbox.put((self, Failed(error)))
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
        """Have its process killed; the actor too if that is not heard of."""
        self._cluster.tell(Kill(self._number))

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
