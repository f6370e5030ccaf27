"""What the process of a run and its bridge to a cluster say to each other; tasks and messages pass as packed bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeJob:
    """What the bridge is started with; ``session`` and ``threads`` are what a worker process asks of a job.

    Attributes:
        address: ``auto``, ``HOST:PORT``, or "" to start Ray on this machine.
        cpus: Processors of one worker.
        gpus: GPUs of one worker.
        wheel: A wheel of medtest that the nodes are given, as text; "" where they have it.
        start_cpus: Processors of a Ray that is started here; None for all that this process may use.
        environment: The variables of the run's process that a worker process has otherwise, as they were; None where
            they were not set.
        probe: A file that a node sees if it shares this run's folder, and what it holds.
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


@dataclass(frozen=True, slots=True)
class Open:
    """To the bridge: an actor for a worker is wanted."""

    number: int


@dataclass(frozen=True, slots=True)
class Start:
    """To the bridge: the worker process may begin; it is told ``job``, packed."""

    number: int
    begin: HostStart


@dataclass(frozen=True, slots=True)
class Give:
    """To the bridge: something for a worker, packed."""

    number: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Kill:
    """To the bridge: the worker process is to be killed."""

    number: int


@dataclass(frozen=True, slots=True)
class Drop:
    """To the bridge: the actor is of no use any more."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStart:
    """What an actor's worker process begins with.

    Attributes:
        session: The job's.
        threads: The job's.
        job: The job, packed.
        folder: The working directory of the run, used where the node has it.
        path: The run's ``sys.path``; of another machine's node, what it has of it comes after its own.
        whole_path: The node is the machine of the run.
        kept: A folder whose new files are given back, as text; "" for none.
        root: The folder from which seeds are read, which the node must have; "" for none.
        data: A URL whose files are to be fetched to it first; "" for none.
        cache_bytes: How much of it the node's disk may hold.
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
    """From the bridge: which nodes the cluster has, when that has changed.

    Attributes:
        nodes: How many nodes are alive.
        cpus: Processors of all of them.
        gpus: GPUs of all of them.
        free_cpus: Processors that nothing has reserved.
        free_gpus: GPUs that nothing has reserved.
        room: How many workers they could hold if nothing else used them.
    """

    nodes: int
    cpus: float
    gpus: float
    free_cpus: float
    free_gpus: float
    room: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterJoined:
    """From the bridge: it is connected.

    Attributes:
        address: ``HOST:PORT`` of the cluster's head.
        here: The node through which this machine speaks to the cluster, by its address.
        seen: The cluster's nodes.
        seconds: How long it took to get there.
    """

    address: str
    here: str
    seen: ClusterSeen
    seconds: float


@dataclass(frozen=True, slots=True)
class NoCluster:
    """From the bridge: it is not, and why; ``fix`` is what to do."""

    found: str
    fix: str


@dataclass(frozen=True, slots=True)
class CutOff:
    """From the bridge, which then ends: the head answers, but the node through which it is spoken to is gone.

    With that node Ray ends all that was started through it. ``seen`` is what is left of the cluster.
    """

    seen: ClusterSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What an actor says of the node on which it is.

    Attributes:
        node: The node's name.
        code: SHA-256 of medtest's own modules.
        versions: Of the libraries that pixels pass through, by name.
        shares: Whether it sees this run's folder.
        same_machine: Whether it is the machine of the run.
        cache: A folder of its own, 0700, that goes with it.
    """

    node: str
    code: str
    versions: Mapping[str, str]
    shares: bool
    same_machine: bool
    cache: str


@dataclass(frozen=True, slots=True)
class WorkerReserved:
    """From the bridge: ``node`` keeps processors and GPUs for an actor, which Ray now starts there."""

    number: int
    node: str


@dataclass(frozen=True, slots=True)
class WorkerPlaced:
    """From the bridge: an actor is there and answers."""

    number: int
    facts: NodeFacts


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that a worker has written to its node, by its place below the folder of what is kept.

    Attributes:
        path: With slashes.
        sha256: Of the bytes.
        content: The bytes.
    """

    path: str
    sha256: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    """From the bridge: what a worker said, each packed, after the files that it tells of."""

    number: int
    messages: tuple[bytes, ...]
    files: tuple[KeptFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnded:
    """From the bridge: a worker is gone.

    Attributes:
        number: Which.
        death: How it ended, in words.
        words: The end of what it wrote.
        lost: The node or the actor is gone, which no case is to blame for.
        problem: Why an actor could not be; "" where it could.
    """

    number: int
    death: str
    words: str = ""
    lost: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HostHeard:
    """What an actor gives back at a call: messages, files, and at the end how the process ended."""

    messages: tuple[bytes, ...] = ()
    files: tuple[KeptFile, ...] = ()
    ended: tuple[str, str] | None = field(default=None)


Command: TypeAlias = "Open | Start | Give | Kill | Drop"
WorkerReport: TypeAlias = "WorkerReserved | WorkerPlaced | Heard | WorkerEnded"
Report: TypeAlias = "ClusterJoined | NoCluster | ClusterSeen | CutOff | WorkerReport"
