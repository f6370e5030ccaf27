"""Ray actor as seen from Ray's driver: reserves room, starts the actor, listens to it and ends it.

Room is reserved by a placement group of one bundle, because Ray offers no other way to see whether a node has reserved
processors: in its tables an actor that waits for room looks like one whose process is slow to start.
"""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import Any, Protocol

from medtest.runner.cluster.node import machine
from medtest.runner.cluster.talk import (
    BridgeJob,
    Heard,
    HostStart,
    NodeFacts,
    WorkerEnded,
    WorkerPlaced,
    WorkerReport,
    WorkerReserved,
)

WAIT_SECONDS = 2.0
"""Seconds that one call waits for an event."""
_UNHEARD = 20.0
"""Seconds after which an actor that does not answer is killed."""
_THREADS = 5
"""Number of concurrent calls to an actor: one that waits, and short ones."""


class Driver(Protocol):
    """Interface of the process that is Ray's driver, used by actors."""

    job: BridgeJob
    ray: Any
    host: Any

    def report(self, report: WorkerReport) -> None:
        """Send a report to the run's process."""

    def end_if_cut_off(self) -> None:
        """End this process if Ray has ended everything it started, which is not the actor's fault."""


class Actor:
    """One actor, with a thread that listens to it.

    Args:
        number: Number of its worker in the run's process.
        driver: Ray's driver.
    """

    def __init__(self, number: int, driver: Driver) -> None:
        self._number, self._driver = number, driver
        self._handle: Any = None
        self._group: Any = None
        self._sent: list[bytes] = []
        self._lock = threading.Lock()
        self._begin: queue.SimpleQueue[HostStart | None] = queue.SimpleQueue()
        self._dropped = False
        self._unwanted = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"actor-{number}", daemon=True)
        self.thread.start()

    def start(self, begin: HostStart) -> None:
        """Let the worker process start."""
        self._begin.put(begin)

    def give(self, content: bytes) -> None:
        """Send something to the worker; ignored if it is gone."""
        with self._lock:
            self._sent.append(content)
            if self._handle is not None:
                self._pass_on(len(self._sent) - 1)

    def _pass_on(self, place: int) -> None:
        content, self._sent[place] = self._sent[place], b""
        with suppress(Exception):
            self._handle.give.remote(place, content)

    def kill(self) -> None:
        """Kill the worker process, or the actor itself if it does not answer."""
        self._unwanted.set()
        self._begin.put(None)
        with suppress(Exception):
            self._handle.kill.remote()
        timer = threading.Timer(_UNHEARD, self._destroy)
        timer.daemon = True
        timer.start()

    def drop(self) -> None:
        """End the actor."""
        self._dropped = True
        self._unwanted.set()
        self._begin.put(None)
        with suppress(Exception):
            self._driver.ray.get(self._handle.close.remote(), timeout=WAIT_SECONDS)
        self._destroy()

    def _destroy(self) -> None:
        from ray.util import remove_placement_group

        with suppress(Exception):
            self._driver.ray.kill(self._handle, no_restart=True)
        with suppress(Exception):
            remove_placement_group(self._group)

    def _run(self) -> None:
        ended = WorkerEnded(number=self._number, death="ended")
        try:
            ended = self._listen()
        except _Unwanted:
            self._destroy()
            ended = WorkerEnded(number=self._number, death="was stopped")
        except Exception as error:  # noqa: BLE001 - whatever Ray raises of an actor that is gone
            if not self._dropped:
                self._driver.end_if_cut_off()
                ended = self._end_report(error)
        self._driver.report(ended)

    def _listen(self) -> WorkerEnded:
        ray, number = self._driver.ray, self._number
        node = self._reserve_room()
        self._driver.report(WorkerReserved(number, node))
        self._driver.report(WorkerPlaced(number, self._place(node)))
        begin = self._begin.get()
        if begin is None:
            return WorkerEnded(number=number, death="was stopped")
        problem: str = ray.get(self._handle.start.remote(begin))
        if problem:
            return WorkerEnded(number=number, death="could not begin", problem=problem)
        while True:
            messages, files, ended = ray.get(self._handle.take.remote(WAIT_SECONDS))
            if messages or files:
                self._driver.report(Heard(number, messages, files))
            if ended is not None:
                return WorkerEnded(number=number, death=ended[0], words=ended[1])

    def _reserve_room(self) -> str:
        """Wait until a node has reserved room for the actor, and return the node's address."""
        from ray.util import placement_group

        job = self._driver.job
        resources = {"CPU": job.cpus, "GPU": job.gpus}
        self._group = placement_group([{name: share for name, share in resources.items() if share > 0}])
        while not self._group.wait(WAIT_SECONDS):
            self._check_still_needed()
        _, node_id = self._find_room()
        nodes = {node["NodeID"]: str(node["NodeManagerAddress"]) for node in self._driver.ray.nodes()}
        return nodes.get(node_id, "")

    def _find_room(self) -> tuple[bool, str]:
        """Return whether a node has reserved room for the actor, and the node's id."""
        from ray.util import placement_group_table

        table = placement_group_table(self._group)
        return table.get("state") == "CREATED", str(table.get("bundles_to_node_id", {}).get(0, ""))

    def _place(self, node: str) -> NodeFacts:
        """Start the actor in the reserved room, wait until it answers, and return facts about its node."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        ray, job = self._driver.ray, self._driver.job
        remote = self._driver.host.options(
            num_cpus=job.cpus,
            num_gpus=job.gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_THREADS,
            scheduling_strategy=PlacementGroupSchedulingStrategy(placement_group=self._group),
        )
        with self._lock:
            self._handle = remote.remote(job.probe, machine())
            for place in range(len(self._sent)):
                self._pass_on(place)
        facts = self._handle.facts.remote(node)
        while not ray.wait([facts], timeout=WAIT_SECONDS)[0]:
            self._check_still_needed()
            if not self._find_room()[0]:
                raise _RoomIsGone(f"{node} died before the worker started")
        placed: NodeFacts = ray.get(facts)
        return placed

    def _check_still_needed(self) -> None:
        if self._unwanted.is_set():
            raise _Unwanted

    def _end_report(self, error: Exception) -> WorkerEnded:
        import ray.exceptions as known

        is_lost = isinstance(error, known.RayActorError | known.NodeDiedError | known.ObjectLostError | _RoomIsGone)
        text = first_line(error)
        if "ModuleNotFoundError" in str(error) or "ImportError" in str(error):
            return WorkerEnded(
                number=self._number, death="could not begin", problem=_missing_medtest_advice(str(error))
            )
        if isinstance(error, known.RuntimeEnvSetupError):
            return WorkerEnded(
                number=self._number, death="could not begin", problem=f"a node cannot take the wheel: {text}"
            )
        return WorkerEnded(number=self._number, death=f"was lost with its node ({text})"[:300], lost=is_lost)


class _Unwanted(Exception):
    """Raised if the worker is no longer needed."""


class _RoomIsGone(Exception):
    """Raised if the node that had reserved room for the actor is gone; Ray looks for another."""


def first_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message, at most 400 characters."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}"[:400]


def _missing_medtest_advice(text: str) -> str:
    last = text.strip().splitlines()[-1]
    return f"a node lacks a module ({last[:200]}); install medtest there, or set executor.wheel=FILE.whl"
