"""Connection of a run's process to a Ray cluster: a bridge, replaced when it is lost."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import replace
from typing import Any, Protocol

from medtest.core.errors import typed_error
from medtest.runner.cluster.talk import (
    BridgeCommand,
    BridgeJob,
    ClusterJoined,
    ClusterSeen,
    CutOff,
    Heard,
    NoCluster,
    WorkerEnded,
    WorkerPlaced,
    WorkerReport,
    WorkerReserved,
)
from medtest.runner.pool.messages import Gone
from medtest.runner.pool.process_worker import ProcessWorker

_START_SECONDS = 180.0
"""Seconds allowed for a cluster to answer or start."""
_END_SECONDS = 20.0
_AGAIN_SECONDS = 3.0
"""Seconds between two attempts to rejoin a cluster."""
_LOOK = "Check that it runs (`ray status`) and that this machine can reach it."


class Listener(Protocol):
    """Receiver of a connection's events, called from the connection's thread."""

    def joined(self, joined: ClusterJoined) -> None:
        """Handle that the cluster was rejoined; it has no workers yet."""

    def lost(self, why: str) -> None:
        """Handle the loss of the cluster and of every worker on its nodes."""

    def seen(self, seen: ClusterSeen) -> None:
        """Handle a change of the cluster's nodes."""

    def heard(self, report: WorkerReport) -> None:
        """Handle a report about a worker."""


class Connection:
    """Connection to a cluster that reconnects as soon as the cluster answers again.

    Args:
        job: The job of the bridge.
        listener: Receives the events.
        wait_seconds: Seconds without a cluster after which :meth:`problem` reports it.
    """

    def __init__(self, job: BridgeJob, listener: Listener, wait_seconds: float) -> None:
        self._job, self._listener, self._wait_seconds = job, listener, wait_seconds
        self._lock = threading.Lock()
        self._bridge: ProcessWorker | None = None
        self._inbox: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._joined: ClusterJoined | None = None
        self._thread: threading.Thread | None = None
        self._connected = False
        self._lost_at: float | None = None
        self._cut_off: ClusterSeen | None = None
        self._refusal = ""

    def open(self) -> ClusterJoined:
        """Start or join the cluster.

        Raises:
            UserMistakes: It does not answer, or has another version.
        """
        answer = self._start()
        if isinstance(answer, NoCluster):
            address = self._job.address
            raise typed_error(
                "executor.address" if address else "executor",
                f"{address or 'ray'}: {answer.found}",
                "auto, or HOST:PORT of a cluster that answers" if address else "",
                answer.fix,
            )
        self._take(answer)
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)
        self._thread.start()
        return answer

    def send(self, command: BridgeCommand) -> None:
        """Send a command to the bridge; ignored while there is none."""
        with self._lock:
            if self._bridge is not None:
                self._bridge._send(command)

    def works(self) -> None:
        """Reset the count of failures: a worker on the cluster has loaded its systems."""
        self._lost_at = None

    @property
    def lost(self) -> bool:
        """True while there is no cluster."""
        return not self._connected

    def problem(self) -> str:
        """Return the reason why the run cannot go on, i.e. that there has been no cluster for too long; else ""."""
        since, joined = self._lost_at, self._joined
        if self._connected or since is None or joined is None or time.monotonic() - since <= self._wait_seconds:
            return ""
        advice = "Finished results are kept; run the same command again"
        seconds = f"{self._wait_seconds:g} s"
        if self._cut_off is not None:
            rest = self._cut_off
            return (
                f"Ray's node on this machine ({joined.here}) is gone, and with it the connection to the cluster at "
                f"{joined.address}; no other node has started here for {seconds}. The rest of the cluster had "
                f"{nodes_in_words(rest)}, {amount(rest.free_cpus, 'CPU')} of them free. {advice} once a node runs here "
                f"(`ray start --address={joined.address}`), or without executor=ray."
            )
        address = f" at {joined.address}" if self._job.address else ""
        return (
            f"The Ray cluster{address} is gone: its head has not answered for {seconds}"
            + (f" ({self._refusal})" if self._refusal else "")
            + f". {advice}, with executor=ray or without."
        )

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._closing.set()
        with self._lock:
            bridge, self._bridge = self._bridge, None
        if bridge is not None:
            if self._connected:
                bridge.retire()
            bridge.end(patience=_END_SECONDS if self._connected else 0.0)
        if self._thread is not None:
            self._thread.join(timeout=_END_SECONDS)

    # ------------------------------------------------------------------------------------------- life of a bridge

    def _start(self) -> ClusterJoined | NoCluster:
        """Start a bridge and return its first message."""
        with self._lock:
            if self._closing.is_set():
                return NoCluster("the run ends", "")
            self._inbox = queue.SimpleQueue()
            self._bridge = bridge = ProcessWorker(self._job, self._inbox)
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                _, report = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return NoCluster(f"silent for {_START_SECONDS:g} s", _LOOK)
            if isinstance(report, ClusterJoined | NoCluster):
                return report
            if isinstance(report, Gone):
                if self._closing.is_set():
                    return NoCluster("the run ends", "")
                words = bridge.last_words().splitlines()[-1:]
                return NoCluster(" ".join([f"the process connected to it {bridge.death()}", *words]), _LOOK)

    def _take(self, joined: ClusterJoined) -> None:
        if self._job.address == "auto":  # stay with this cluster, whatever else is started on this machine later
            self._job = replace(self._job, address=joined.address)
        self._joined, self._connected, self._cut_off, self._refusal = joined, True, None, ""

    def _run(self) -> None:
        while True:
            reason = self._listen()
            if self._closing.is_set():
                return
            self._connected = False
            self._lost_at = self._lost_at or time.monotonic()
            self._listener.lost(reason)
            if not self._rejoin():
                return

    def _listen(self) -> str:
        """Relay the bridge's messages until it is gone, and return the reason."""
        self._cut_off = None
        while True:
            _, report = self._inbox.get()
            match report:
                case CutOff(seen=seen):
                    self._cut_off = seen
                case ClusterSeen():
                    self._listener.seen(report)
                case WorkerReserved() | WorkerPlaced() | Heard() | WorkerEnded():
                    self._listener.heard(report)
                case Gone():
                    return self._loss_reason()

    def _loss_reason(self) -> str:
        if self._cut_off is not None:
            return "Ray's node on this machine died"
        bridge = self._bridge
        death = "" if bridge is None else bridge.death()
        if death.startswith("was killed"):
            return f"the process connected to it {death}"
        return "its head died"

    def _rejoin(self) -> bool:
        """Try until the cluster is rejoined and return True; False if the run ends first."""
        while True:
            self._end_bridge()
            answer = self._start()
            if self._closing.is_set():
                return False
            if isinstance(answer, ClusterJoined):
                self._take(answer)
                self._listener.joined(answer)
                return True
            self._refusal = answer.found
            self._closing.wait(_AGAIN_SECONDS)

    def _end_bridge(self) -> None:
        with self._lock:
            bridge, self._bridge = self._bridge, None
        if bridge is not None:
            bridge.end(patience=0.0)


def nodes_in_words(cluster: ClusterSeen) -> str:
    """Format the number of nodes and their resources ("2 nodes with 4 CPUs and 1 GPU")."""
    gpus = f" and {amount(cluster.gpus, 'GPU')}" if cluster.gpus else ""
    return f"{amount(cluster.nodes, 'node')} with {amount(cluster.cpus, 'CPU')}{gpus}"


def amount(number: float, noun: str) -> str:
    """Format a number with its noun ("1 CPU", "0.5 CPUs")."""
    return f"{number:g} {noun}{'' if number == 1 else 's'}"
