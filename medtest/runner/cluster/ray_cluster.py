"""Workplace on the nodes of a Ray cluster: number of workers, their start, and notices about nodes."""

from __future__ import annotations

import os
import pickle
import secrets
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtest.core.errors import MedtestError, typed_error
from medtest.runner.cluster.connection import Connection, amount, nodes_in_words
from medtest.runner.cluster.node import code_sha256, versions
from medtest.runner.cluster.ray_worker import RayWorker
from medtest.runner.cluster.talk import (
    BridgeCommand,
    BridgeJob,
    ClusterJoined,
    ClusterSeen,
    HostStart,
    NodeFacts,
    WorkerReport,
)
from medtest.runner.pool.allocator import VARIABLE
from medtest.runner.pool.layout import Layout, usable_cores
from medtest.runner.pool.messages import Job
from medtest.runner.pool.process_worker import THREAD_VARIABLES
from medtest.runner.pool.worker import Inbox, Worker
from medtest.runner.pool.workplace import Workplace
from medtest.suite.schema import ExecutorBlock

_HOST_SECONDS = 900.0
"""Seconds allowed for Ray to start a worker's process once there is room."""
_BYTES = 1024**3


class RayCluster(Workplace):
    """Nodes of a Ray cluster.

    Args:
        settings: The cluster and the resources of a worker.
        outputs: The run's folder of results, ``outputs/``, which nodes may share.
        data: The URL from which seeds are read, or "".

    Attributes:
        start_seconds: Seconds until the cluster was available.
        joined_at: Time (``time.monotonic()``) of the last joining.
        draws: True if all nodes seen so far share ``outputs``; otherwise pictures are drawn on this machine.
    """

    def __init__(self, settings: ExecutorBlock, outputs: Path, *, data: str = "") -> None:
        super().__init__()
        self.waiting = settings.ahead - 1
        self.outputs = outputs.resolve()
        self.start_seconds = 0.0
        self.joined_at = 0.0
        self._settings, self._data = settings, data
        self._workers: dict[int, RayWorker] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._seen: ClusterSeen | None = None
        self._lost = (0.0, "")
        self._told: set[str] = set()
        self._probe = self.outputs / f".nodes-{secrets.token_hex(8)}"

    def open(self) -> None:
        """Start or join the cluster.

        Raises:
            UserMistakes: It does not answer, has another version, or no node has room for a worker.
            OutputProblem: The folder of results cannot be written.
        """
        from medtest.runner.folder import output_problems

        with output_problems(self._probe):
            self.outputs.mkdir(parents=True, exist_ok=True)
            content = _probe_content(self._probe)
        settings = self._settings
        self._connection = Connection(
            BridgeJob(
                address=settings.address or "",
                cpus=settings.cpus,
                gpus=settings.gpus,
                wheel=str(settings.wheel or ""),
                start_cpus=None if settings.address else usable_cores(),
                environment={name: os.environ.get(name) for name in (*THREAD_VARIABLES, VARIABLE)},
                probe=(str(self._probe), content),
            ),
            self,
            settings.wait_seconds,
        )
        joined = self._connection.open()
        self.start_seconds, self.joined_at = joined.seconds, time.monotonic()
        self._seen = self._seen or joined.seen
        if not joined.seen.room:
            raise typed_error(
                "executor",
                f"{nodes_in_words(joined.seen)} in all",
                f"nodes with {self._demand()} for each worker",
                "Lower executor.cpus or executor.gpus, or start nodes that have them.",
            )

    def _demand(self) -> str:
        gpus = f" and {amount(self._settings.gpus, 'GPU')}" if self._settings.gpus else ""
        return f"{amount(self._settings.cpus, 'CPU')}{gpus}"

    # ------------------------------------------------------------------------------------------- interface of a
    # workplace

    def worker(self, job: Any, inbox: Inbox[tuple[Worker, Any]]) -> Worker:
        """Request an actor."""
        return RayWorker(job, inbox, self)

    def device(self, requested: str, *, needed: bool) -> str | None:
        """Return ``cuda:0`` if each worker has GPUs (Ray shows it no others), else ``cpu``."""
        if not needed or not self._settings.gpus:
            if needed and requested.startswith("cuda"):
                raise typed_error(
                    "executor.gpus", "0", "at least a part of one", f"device={requested} needs executor.gpus=1."
                )
            return "cpu"
        return "cpu" if requested == "cpu" else "cuda:0"

    def layout(self, *, device: str, units: int, workers: int | None, threads: int | None) -> Layout:
        """Return as many workers as the user chose, else as many as the nodes have room for."""
        room = 1 if self._seen is None else max(1, self._seen.room)
        cores = max(1, int(self._settings.cpus)) if device != "cpu" or workers is not None else 1
        return Layout(workers=max(1, min(workers or room, units)), threads=threads or cores)

    def check(self) -> None:
        """Raise an error if no worker has started for long, naming the missing cluster, node, room or process.

        Raises:
            MedtestError: No worker could start.
        """
        connection = self._connection
        if connection is None:
            return
        if problem := connection.problem():
            raise MedtestError(problem)
        with self._lock:
            workers = list(self._workers.values())
        if connection.lost or not workers or any(worker.node for worker in workers):
            return
        slowest = max(workers, key=lambda worker: worker.starts)
        if slowest.starts > _HOST_SECONDS:
            raise MedtestError(
                f"The node {slowest.reserved} has room for a worker, but Ray has started no process for it in "
                f"{_HOST_SECONDS:g} s; the logs there state the cause (/tmp/ray/session_latest/logs). "
                "Finished results are kept."
            )
        if all(worker.waits > self._settings.wait_seconds for worker in workers):
            raise MedtestError(self._no_room_message())

    def _no_room_message(self) -> str:
        seconds, seen = f"{self._settings.wait_seconds:g} s", self._seen
        had = "" if seen is None else f": it has {nodes_in_words(seen)}"
        after = "Finished results are kept; run the same command again once"
        if seen is None or not seen.room:
            return (
                f"The cluster has had no node that can hold a worker ({self._demand()}) for {seconds}{had}. "
                f"{after} nodes are available (`ray status` lists them)."
            )
        gpus = f" and {amount(seen.free_gpus, 'GPU')}" if self._settings.gpus else ""
        return (
            f"No node of the cluster has had room for a worker for {seconds}{had}, of which "
            f"{amount(seen.free_cpus, 'CPU')}{gpus} on all nodes together are free; a worker takes {self._demand()} of "
            f"one node. {after} other programs leave room, or with a smaller executor.cpus (`ray status` lists what is "
            "in use)."
        )

    def close(self) -> None:
        """Leave the cluster."""
        if self._connection is not None:
            self._connection.close()
        with suppress(OSError):
            self._probe.unlink()

    # --------------------------------------------------------------------------------------------- interface for
    # workers

    def register(self, worker: RayWorker) -> int:
        """Register a worker and return its number for the bridge."""
        with self._lock:
            self._count += 1
            self._workers[self._count] = worker
            return self._count

    def forget(self, number: int) -> None:
        """Remove a worker."""
        with self._lock:
            self._workers.pop(number, None)

    def send(self, command: BridgeCommand) -> None:
        """Send a command to the bridge; ignored while there is none."""
        if self._connection is not None:
            self._connection.send(command)

    def works(self) -> None:
        """Record that a worker has loaded its systems."""
        if self._connection is not None:
            self._connection.works()

    def begin(self, job: Job, facts: NodeFacts) -> HostStart:
        """Return the start message for a worker on a node.

        Raises:
            MedtestError: The node has another medtest, or lacks the data.
        """
        self._check_node(facts)
        kept_folder, data = "", ""
        if not facts.shares:
            self.draws = False
            kept_folder = f"{facts.cache}/outputs"
            folders = [Path(folder).relative_to(self.outputs) for folder in job.folders]
            job = replace(
                job,
                folders=tuple(f"{kept_folder}/{folder.as_posix()}" for folder in folders),
                hide=((facts.cache, "…"), *job.hide),
            )
            if self._data:
                data = self._data
                job = replace(job, data=f"{facts.cache}/data")
        if not facts.same_machine:  # SQLite's locks do not work across machines on network file systems
            job = replace(job, shared=f"{facts.cache}/answers" if job.shared else "")
        return HostStart(
            session=job.session,
            threads=job.threads,
            job=pickle.dumps(job),
            folder=os.getcwd(),
            path=tuple(place or os.getcwd() for place in sys.path),
            whole_path=facts.same_machine,
            kept=kept_folder,
            root=job.data or "",
            data=data,
            cache_bytes=int(self._settings.cache_gb * _BYTES),
        )

    def _check_node(self, facts: NodeFacts) -> None:
        if facts.code != code_sha256():
            raise MedtestError(
                f"The node {facts.node} has a different version of medtest than this machine. Install the same version "
                "there, or set executor.wheel=FILE.whl (`python -m build --wheel` makes the file)."
            )
        here_versions = versions()
        different = [
            f"{name} {facts.versions.get(name, '(none)')} (here {here_versions[name]})"
            for name in here_versions
            if facts.versions.get(name) != here_versions[name]
        ]
        if different and facts.node not in self._told:
            self._told.add(facts.node)
            self.notices.append(f"The node {facts.node} has {', '.join(different)}: pixels and scores may differ.")

    # --------------------------------------------------------------------------------------- interface for the
    # connection

    def joined(self, joined: ClusterJoined) -> None:
        """Request actors for the waiting workers after the cluster was rejoined."""
        since, reason = self._lost
        seconds = f"{time.monotonic() - since:.0f} s"
        self.notices.append(f"The Ray cluster was lost ({reason}) and joined again after {seconds}.")
        self._seen, self.joined_at = joined.seen, time.monotonic()
        with self._lock:
            workers = dict(self._workers)
        for number, worker in workers.items():
            if not (worker.node or worker.reserved):
                self.send(BridgeCommand("open", number))

    def lost(self, why: str) -> None:
        """Mark every worker on a node as gone; workers that wait for a node keep waiting."""
        self._lost = (time.monotonic(), why)
        with self._lock:
            workers = list(self._workers.values())
        for worker in workers:
            if worker.node or worker.reserved:
                worker.lose(f"was lost with the Ray cluster ({why})")

    def seen(self, seen: ClusterSeen) -> None:
        """Store the new state of the nodes."""
        self._seen = seen

    def heard(self, report: WorkerReport) -> None:
        """Pass a report on to its worker."""
        with self._lock:
            worker = self._workers.get(report.number)
        if worker is not None:
            worker.heard(report)


def _probe_content(path: Path) -> str:
    """Write a random text to a file and return it; a node that reads the same shares the folder."""
    content = secrets.token_hex(16)
    path.write_text(content, encoding="utf-8")
    return content
