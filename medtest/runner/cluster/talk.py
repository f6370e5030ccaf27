"""Messages between the process of a run and its bridge to a cluster; tasks and worker messages pass as packed bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeJob:
    """Job of the bridge; ``session`` and ``threads`` are required by a worker process.

    Attributes:
        address: ``auto``, ``HOST:PORT``, or "" to start Ray on this machine.
        cpus: Processors of one worker.
        gpus: GPUs of one worker.
        wheel: Path of a medtest wheel to install on the nodes; "" if they have medtest.
        start_cpus: Processors of a Ray started here; None for all that this process may use.
        environment: Original values of the run's environment variables that a worker process changes; None for unset
            ones.
        probe: Path of a file that a node sees if it shares this run's folder, and the file's content.
    """

    address: str
    cpus: float
    gpus: float
    wheel: str
    start_cpus: int | None
    environment: Mapping[str, str | None]
    probe: tuple[str, str]
    threads: int = 1
    session: str = "medtest.runner.cluster.bridge:Bridge"


class BridgeCommand(NamedTuple):
    """Command to the bridge.

    Attributes:
        action: ``open``: create an actor for a worker; ``start``: start the worker process; ``give``: pass a packed
            message to the worker; ``kill``: kill the worker process; ``drop``: the actor is no longer needed.
        number: Number of the worker.
        content: The start message for ``start``, the packed message for ``give``.
    """

    action: Literal["open", "start", "give", "kill", "drop"]
    number: int
    content: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStart:
    """Start message of an actor's worker process.

    Attributes:
        session: The job's session.
        threads: The job's threads.
        job: The job, packed.
        folder: The working directory of the run, used if the node has it.
        path: The run's ``sys.path``; on a node of another machine its existing entries follow the node's own.
        whole_path: True if the node is the machine of the run.
        kept: A folder whose new files are returned, as text; "" for none.
        root: The folder from which seeds are read, which the node must have; "" for none.
        data: A URL whose files are downloaded to it first; "" for none.
        cache_bytes: Limit for downloaded data on the node's disk.
    """

    session: str
    threads: int
    job: bytes
    folder: str
    path: tuple[str, ...]
    whole_path: bool
    kept: str = ""
    root: str = ""
    data: str = ""
    cache_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSeen:
    """From the bridge: the cluster's nodes, sent on changes.

    Attributes:
        nodes: Number of nodes alive.
        cpus: Processors of all of them.
        gpus: GPUs of all of them.
        free_cpus: Unreserved processors.
        free_gpus: Unreserved GPUs.
        room: Number of workers that would fit if nothing else used the nodes.
    """

    nodes: int
    cpus: float
    gpus: float
    free_cpus: float
    free_gpus: float
    room: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterJoined:
    """From the bridge: the cluster was joined.

    Attributes:
        address: ``HOST:PORT`` of the cluster's head.
        here: Address of the node through which this machine is connected to the cluster.
        seen: The cluster's nodes.
        seconds: Duration of joining.
    """

    address: str
    here: str
    seen: ClusterSeen
    seconds: float


@dataclass(frozen=True, slots=True)
class NoCluster:
    """From the bridge: the cluster could not be joined, with the reason; ``fix`` is the remedy."""

    found: str
    fix: str


@dataclass(frozen=True, slots=True)
class CutOff:
    """Last message of the bridge: the head answers, but the node that connects the bridge is gone.

    With that node Ray ends everything started through it. ``seen`` are the remaining nodes.
    """

    seen: ClusterSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """Facts that an actor reports about its node.

    Attributes:
        node: The node's name.
        code: SHA-256 of medtest's own modules.
        versions: Versions of the libraries that affect pixels, by name.
        shares: True if it sees this run's folder.
        same_machine: True if it is the machine of the run.
        cache: A private folder (0700), removed with the actor.
    """

    node: str
    code: str
    versions: Mapping[str, str]
    shares: bool
    same_machine: bool
    cache: str


@dataclass(frozen=True, slots=True)
class WorkerReserved:
    """From the bridge: ``node`` has reserved processors and GPUs for an actor, which Ray now starts there."""

    number: int
    node: str


@dataclass(frozen=True, slots=True)
class WorkerPlaced:
    """From the bridge: an actor has started and answers."""

    number: int
    facts: NodeFacts


@dataclass(frozen=True, slots=True)
class KeptFile:
    """File written by a worker on its node, with its path below the folder of kept files.

    Attributes:
        path: Path with slashes.
        sha256: SHA-256 of the bytes.
        content: The bytes.
    """

    path: str
    sha256: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    """From the bridge: packed messages of a worker, after the files they mention."""

    number: int
    messages: tuple[bytes, ...]
    files: tuple[KeptFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnded:
    """From the bridge: a worker is gone.

    Attributes:
        number: Number of the worker.
        death: How it ended.
        words: The end of its output.
        lost: True if the node or the actor is gone, for which no case is to blame.
        problem: Reason why an actor could not start; "" if it started.
    """

    number: int
    death: str
    words: str = ""
    lost: bool = False
    problem: str = ""


WorkerReport: TypeAlias = "WorkerReserved | WorkerPlaced | Heard | WorkerEnded"
Report: TypeAlias = "ClusterJoined | NoCluster | ClusterSeen | CutOff | WorkerReport"
