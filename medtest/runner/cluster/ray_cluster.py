"""Workers live on the nodes of a Ray cluster: how many there is room for, what each is told, what is said of nodes."""

from __future__ import annotations

import os
import queue
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtest.errors import MedtestError, Mistake
from medtest.runner.cluster.node import code_sha256, versions
from medtest.runner.cluster.ray_worker import RayWorker, packed_start
from medtest.runner.cluster.talk import (
    BridgeJob,
    ClusterJoined,
    Command,
    Drop,
    Heard,
    HostStart,
    NoCluster,
    NodeFacts,
    WorkerEnded,
    WorkerPlaced,
)
from medtest.runner.pool.allocator import VARIABLE
from medtest.runner.pool.layout import Layout, usable_cores
from medtest.runner.pool.messages import Gone, Job
from medtest.runner.pool.process_worker import THREAD_VARIABLES, ProcessWorker
from medtest.runner.pool.worker import Inbox, Worker
from medtest.runner.pool.workplace import Workplace
from medtest.suite.model import ClusterSettings

_START_SECONDS = 180.0
"""Time that a cluster has to answer, or to start."""
_END_SECONDS = 20.0
_BYTES = 1024**3


class RayCluster(Workplace):
    """The nodes of a Ray cluster.

    Args:
        settings: Which cluster, and what a worker takes of it.
        outputs: The run's folder of results, ``outputs/``, which nodes may share.
        data: The URL from which seeds are read, or "".

    Attributes:
        start_seconds: How long the cluster took to be there.
        shared: Whether all nodes that were heard of see ``outputs``.
    """

    def __init__(self, settings: ClusterSettings, outputs: Path, *, data: str = "") -> None:
        super().__init__()
        self.waiting = settings.ahead - 1
        self.outputs = outputs.resolve()
        self.shared = True
        self.start_seconds = 0.0
        self._settings, self._data = settings, data
        self._workers: dict[int, RayWorker] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._inbox: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._bridge: ProcessWorker | None = None
        self._cluster: ClusterJoined | None = None
        self._told: set[str] = set()
        self._probe = self.outputs / f".nodes-{secrets.token_hex(8)}"
        self._closing = False

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
        self._bridge = ProcessWorker(
            BridgeJob(
                address=settings.address or "",
                cpus=settings.cpus,
                gpus=settings.gpus,
                wheel=str(settings.wheel or ""),
                start_cpus=None if settings.address else usable_cores(),
                environment={name: os.environ.get(name) for name in (*THREAD_VARIABLES, VARIABLE)},
                probe=(str(self._probe), content),
            ),
            self._inbox,
        )
        self._cluster = self._answer()
        self.start_seconds = self._cluster.seconds
        if not self._cluster.room:
            wanted = f"{settings.cpus:g} CPUs" + (f" and {settings.gpus:g} GPUs" if settings.gpus else "")
            raise self._mistake(
                "executor",
                f"{self._cluster.nodes} nodes with {self._cluster.cpus:g} CPUs and {self._cluster.gpus:g} GPUs in all",
                f"nodes with {wanted} for each worker",
                "Lower executor.cpus or executor.gpus, or start nodes that have them.",
            )
        threading.Thread(target=self._listen, name="bridge", daemon=True).start()

    def _answer(self) -> ClusterJoined:
        """Wait for what the bridge says first."""
        address = self._settings.address
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                _, said = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise self._mistake(
                    "executor.address",
                    f"{address or 'Ray on this machine'}, silent for {_START_SECONDS:g} s",
                    "auto, or HOST:PORT of a cluster that answers",
                    "Look whether it runs (`ray status`) and whether this machine reaches it.",
                ) from None
            if isinstance(said, ClusterJoined):
                return said
            if isinstance(said, NoCluster):
                raise self._mistake(
                    "executor.address" if address else "executor",
                    f"{address or 'ray'}: {said.found}",
                    "auto, or HOST:PORT of a cluster that answers" if address else "",
                    said.fix,
                )
            if isinstance(said, Gone) and self._bridge is not None:
                words = self._bridge.last_words().splitlines()[-1:]
                raise self._mistake(
                    "executor.address" if address else "executor",
                    " ".join([f"{address or 'ray'}: the process that speaks to it {self._bridge.death()}", *words]),
                    "",
                    "Look whether it runs (`ray status`) and whether this machine reaches it.",
                )

    def _mistake(self, key: str, found: str, allowed: str, fix: str) -> MedtestError:
        return Mistake(where="command line", key=key, found=found, allowed=allowed, fix=fix).as_error()

    # ------------------------------------------------------------------------------------------- what a workplace does

    @property
    def draws(self) -> bool:
        """Whether every node shares the run's folder; else pictures are drawn on this machine."""
        return self.shared

    def worker(self, job: Any, inbox: Inbox[tuple[Worker, Any]]) -> Worker:
        """Ask for an actor."""
        return RayWorker(job, inbox, self)

    def device(self, asked: str, *, needed: bool) -> str | None:
        """Return ``cuda:0`` where each worker has GPUs (Ray shows it no others), else ``cpu``."""
        if not needed or not self._settings.gpus:
            if needed and asked.startswith("cuda"):
                raise self._mistake(
                    "executor.gpus", "0", "at least a part of one", f"device={asked} needs executor.gpus=1."
                )
            return "cpu"
        return "cpu" if asked == "cpu" else "cuda:0"

    def layout(self, *, device: str, units: int, workers: int | None, threads: int | None) -> Layout:
        """Return as many workers as the user chose, else as the nodes have room for."""
        room = 1 if self._cluster is None else self._cluster.room
        own = max(1, int(self._settings.cpus)) if device != "cpu" or workers is not None else 1
        return Layout(workers=max(1, min(workers or room, units)), threads=threads or own)

    def check(self) -> None:
        """Complain when no node has had room for any worker for long.

        Raises:
            MedtestError: So it is.
        """
        with self._lock:
            workers = list(self._workers.values())
        seconds = self._settings.wait_seconds
        if workers and all(worker.waits > seconds for worker in workers):
            raise MedtestError(
                f"No node of the cluster has had room for a worker for {seconds:g} s. What is finished is kept; the "
                "same command goes on from there once nodes are there (`ray status` lists them)."
            )

    def close(self) -> None:
        """Leave the cluster."""
        self._closing = True
        bridge = self._bridge
        if bridge is not None:
            bridge.retire()
            bridge.end(patience=_END_SECONDS)
        with suppress(OSError):
            self._probe.unlink()

    # ----------------------------------------------------------------------------------------------- what workers ask

    def register(self, worker: RayWorker) -> int:
        """Return a number for a worker, by which the bridge knows it."""
        with self._lock:
            self._count += 1
            self._workers[self._count] = worker
            return self._count

    def forget(self, number: int) -> None:
        """A worker is gone."""
        with self._lock:
            self._workers.pop(number, None)

    def tell(self, command: Command) -> None:
        """Tell the bridge something; nothing comes of it where it is gone."""
        if self._bridge is not None and not (self._closing and not isinstance(command, Drop)):
            self._bridge._send(command)

    def begin(self, job: Job, facts: NodeFacts) -> HostStart:
        """Return what a worker is told on a node.

        Raises:
            MedtestError: The node has another medtest, or has not the data.
        """
        self._look_at(facts)
        kept, data = "", ""
        if not facts.shares:
            self.shared = False
            kept = f"{facts.cache}/outputs"
            folders = [Path(folder).relative_to(self.outputs) for folder in job.folders]
            job = replace(
                job,
                folders=tuple(f"{kept}/{folder.as_posix()}" for folder in folders),
                hide=((facts.cache, "…"), *job.hide),
            )
            if self._data:
                data = self._data
                job = replace(job, data=f"{facts.cache}/data")
        if not facts.same_machine:  # SQLite's locks do not hold over a network's file systems
            job = replace(job, shared=f"{facts.cache}/answers" if job.shared else "")
        return packed_start(job, facts, kept=kept, data=data, cache_bytes=int(self._settings.cache_gb * _BYTES))

    def _look_at(self, facts: NodeFacts) -> None:
        if facts.code != code_sha256():
            raise MedtestError(
                f"The node {facts.node} has another medtest than this machine, so that records would be another's. "
                "Install the same there, or give its wheel: executor.wheel=FILE.whl (`python -m build --wheel`)."
            )
        mine = versions()
        other = [
            f"{name} {facts.versions.get(name, '(none)')} (here {mine[name]})"
            for name in mine
            if facts.versions.get(name) != mine[name]
        ]
        if other and facts.node not in self._told:
            self._told.add(facts.node)
            self.notices.append(f"The node {facts.node} has {', '.join(other)}: pixels and scores may differ.")

    # ------------------------------------------------------------------------------------- what is heard of the bridge

    def _listen(self) -> None:
        while True:
            _, said = self._inbox.get()
            if isinstance(said, Gone):
                self._lost()
                return
            if isinstance(said, WorkerPlaced | Heard | WorkerEnded):
                with self._lock:
                    worker = self._workers.get(said.number)
                if worker is not None:
                    worker.heard(said)

    def _lost(self) -> None:
        """The bridge is gone, mostly for the cluster's head is."""
        with self._lock:
            workers = list(self._workers.values())
        error = MedtestError(
            "The Ray cluster is gone (its head, or the process that speaks to it). What is finished is kept; the same "
            "command goes on from there, with executor=ray or without."
        )
        for worker in workers:
            if self._closing:
                worker.over()
            else:
                worker.fail(error)


def _probe_content(path: Path) -> str:
    """Write a file that nobody could guess, and return what it holds."""
    content = secrets.token_hex(16)
    path.write_text(content, encoding="utf-8")
    return content
