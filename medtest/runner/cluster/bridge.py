"""Ray's driver, in a process of its own: a cluster that dies takes this process with it and not the run.

It starts or joins a cluster, makes an actor for each worker that is wanted, and passes on what is said. Ray sends home
no figures of its use, opens no dashboard, and one that is started here listens on loopback alone.
"""

from __future__ import annotations

import os
import queue
import socket
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from medtest.runner.cluster.node import machine
from medtest.runner.cluster.talk import (
    BridgeJob,
    ClusterJoined,
    Command,
    Drop,
    Give,
    Heard,
    HostHeard,
    HostStart,
    Kill,
    NoCluster,
    NodeFacts,
    Open,
    Start,
    WorkerEnded,
    WorkerPlaced,
)

_WAIT = 2.0
"""Seconds for which an actor's call waits for something to be said."""
_ANSWER_SECONDS = 10.0
_UNHEARD = 20.0
"""Seconds after which an actor is killed whose process was to be."""
_THREADS = 5
"""Calls that an actor answers at a time: one that waits, and short ones beside it."""
_OFF = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token", "RAY_worker_niceness": "0"}
"""Of a Ray that is started here: its address is then 127.0.0.1, who speaks to it needs the token in the home folder,
and its workers are as nice as local ones (Ray's own default is 15)."""
_TRIES = 3
"""How often Ray is started here where it timed itself out, as it does after 30 s on a busy machine."""


class Bridge:
    """Ray's driver as the session of a worker process.

    Args:
        job: What it is for.
        send: Puts a report into the pipe to the run's process.
        own_process: True.
    """

    def __init__(self, job: BridgeJob, send: Callable[[Any], None], *, own_process: bool = True) -> None:
        self._job = job
        self._send = send
        self._actors: dict[int, _Actor] = {}
        self._ray: Any = None
        self._host: Any = None

    def open(self) -> bool:
        """Start or join the cluster and say so, or why that cannot be."""
        _be_ordinary(self._job)
        started = time.monotonic()
        try:
            import ray

            self._ray = ray
            self._join()
        except ImportError as error:
            self._send(NoCluster(f"no Ray ({error})", "Install it: pip install 'medtest[ray]'."))
            return False
        except Exception as error:  # noqa: BLE001 - Ray raises of every kind; the run's process says it in one message
            self._send(NoCluster(_first_line(error), _advice(error, self._job)))
            return False
        all_of = ray.cluster_resources()
        nodes = [node for node in ray.nodes() if node["Alive"]]
        self._send(
            ClusterJoined(
                cpus=float(all_of.get("CPU", 0.0)),
                gpus=float(all_of.get("GPU", 0.0)),
                nodes=len(nodes),
                room=sum(self._room(node["Resources"]) for node in nodes),
                seconds=time.monotonic() - started,
            )
        )
        return True

    def _join(self) -> None:
        job, ray = self._job, self._ray
        how: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if job.address:
            _answers(job.address)
            how["address"] = job.address
        else:
            how |= {"address": "local", "include_dashboard": False, "num_cpus": job.start_cpus}
        with tempfile.TemporaryDirectory(prefix="medtest-wheel-") as folder:  # Ray has sent it once it is there
            if job.wheel:
                how["runtime_env"] = {"py_modules": _unpacked(Path(job.wheel), Path(folder))}
            self._init(how)
        from medtest.runner.cluster.host import WorkerHost

        options: dict[str, Any] = {"num_cpus": job.cpus, "num_gpus": job.gpus, "max_restarts": 0}
        self._host = ray.remote(WorkerHost).options(**options, max_task_retries=0, max_concurrency=_THREADS)

    def _init(self, how: dict[str, Any]) -> None:
        for number in range(1, _TRIES + 1):
            try:
                self._ray.init(**how)
                return
            except Exception as error:
                if self._job.address or "timed out during startup" not in str(error) or number == _TRIES:
                    raise
                self._ray.shutdown()

    def _room(self, resources: dict[str, float]) -> int:
        wanted = {"CPU": self._job.cpus, "GPU": self._job.gpus}
        return int(min(resources.get(name, 0.0) // each for name, each in wanted.items() if each > 0))

    def run(self, command: Command) -> None:
        """Do what the run's process asks."""
        match command:
            case Open(number=number):
                self._actors[number] = _Actor(number, self)
            case Start(number=number, begin=begin):
                self._actors[number].start(begin)
            case Give(number=number, content=content):
                self._actors[number].give(content)
            case Kill(number=number):
                self._actors[number].kill()
            case Drop(number=number):
                if (actor := self._actors.pop(number, None)) is not None:
                    actor.drop()

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        for actor in list(self._actors.values()):
            actor.drop()
        for actor in list(self._actors.values()):
            actor.thread.join(timeout=_WAIT)
        self._ray.shutdown()

    # what an actor asks of it

    @property
    def ray(self) -> Any:
        """The library."""
        return self._ray

    def new_host(self) -> Any:
        """Return the handle of a new actor."""
        return self._host.remote(self._job.probe, machine())

    def report(self, what: Any) -> None:
        """Tell the run's process."""
        self._send(what)


class _Actor:
    """One actor: a thread that listens to it, and what is sent to it."""

    def __init__(self, number: int, bridge: Bridge) -> None:
        self._number, self._bridge = number, bridge
        self._handle: Any = None
        self._given = 0
        self._begin: queue.SimpleQueue[HostStart | None] = queue.SimpleQueue()
        self._dropped = False
        self.thread = threading.Thread(target=self._live, name=f"actor-{number}", daemon=True)
        self._handle = bridge.new_host()
        self.thread.start()

    def start(self, begin: HostStart) -> None:
        """Let the worker process begin."""
        self._begin.put(begin)

    def give(self, content: bytes) -> None:
        """Hand the worker something; nothing is said of one that is gone."""
        with suppress(Exception):
            self._handle.give.remote(self._given, content)
        self._given += 1

    def kill(self) -> None:
        """Kill the worker process; the actor itself where it does not answer."""
        self._begin.put(None)
        with suppress(Exception):
            self._handle.kill.remote()
        timer = threading.Timer(_UNHEARD, self._destroy)
        timer.daemon = True
        timer.start()

    def drop(self) -> None:
        """End the actor."""
        self._dropped = True
        self._begin.put(None)
        with suppress(Exception):
            self._bridge.ray.get(self._handle.close.remote(), timeout=_WAIT)
        self._destroy()

    def _destroy(self) -> None:
        with suppress(Exception):
            self._bridge.ray.kill(self._handle, no_restart=True)

    def _live(self) -> None:
        ended = WorkerEnded(number=self._number, death="ended")
        try:
            ended = self._listen()
        except Exception as error:  # noqa: BLE001 - whatever Ray raises of an actor that is gone
            if not self._dropped:
                ended = self._why(error)
        self._bridge.report(ended)

    def _listen(self) -> WorkerEnded:
        ray, number = self._bridge.ray, self._number
        facts: NodeFacts = self._placed()
        self._bridge.report(WorkerPlaced(number, facts))
        begin = self._begin.get()
        if begin is None:
            return WorkerEnded(number=number, death="was stopped")
        problem: str = ray.get(self._handle.start.remote(begin))
        if problem:
            return WorkerEnded(number=number, death="could not begin", problem=problem)
        while True:
            heard: HostHeard = ray.get(self._handle.take.remote(_WAIT))
            if heard.messages or heard.files:
                self._bridge.report(Heard(number, heard.messages, heard.files))
            if heard.ended is not None:
                return WorkerEnded(number=number, death=heard.ended[0], words=heard.ended[1])

    def _placed(self) -> NodeFacts:
        """Wait until a node has room, and return what is known of it."""
        ray = self._bridge.ray
        where = self._handle.__ray_call__.remote(_node_name)
        while not ray.wait([where], timeout=_WAIT)[0]:
            if self._dropped or not self._begin.empty():
                self._destroy()
        facts: NodeFacts = ray.get(self._handle.facts.remote(ray.get(where)))
        return facts

    def _why(self, error: Exception) -> WorkerEnded:
        import ray.exceptions as known

        lost = isinstance(error, known.RayActorError | known.NodeDiedError | known.ObjectLostError)
        text = _first_line(error)
        if "ModuleNotFoundError" in str(error) or "ImportError" in str(error):
            return WorkerEnded(number=self._number, death="could not begin", problem=_no_medtest(str(error)))
        if isinstance(error, known.RuntimeEnvSetupError):
            return WorkerEnded(
                number=self._number, death="could not begin", problem=f"a node cannot take the wheel: {text}"
            )
        return WorkerEnded(number=self._number, death=f"was lost with its node ({text})"[:300], lost=lost)


def _unpacked(wheel: Path, folder: Path) -> list[str]:
    """Unpack a wheel and return its folders: given whole, Ray would have pip fetch all that medtest needs on each node.

    Raises:
        zipfile.BadZipFile: It is no wheel.
    """
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return [str(path) for path in sorted(folder.iterdir()) if path.is_dir()]


def _answers(address: str) -> None:
    """Look whether anybody listens at an address: Ray itself would try for minutes.

    Raises:
        OSError: Nobody does.
    """
    host, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS).close()


def _node_name(_host: Any) -> str:
    import ray

    return str(ray.util.get_node_ip_address())


def _no_medtest(text: str) -> str:
    last = text.strip().splitlines()[-1]
    return f"a node has not what it takes ({last[:200]}); install medtest there, or give executor.wheel=FILE.whl"


def _be_ordinary(job: BridgeJob) -> None:
    """Take back what makes a worker process one, for what is started from here inherits it."""
    for name, value in job.environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    for name, value in {**_OFF, **({} if job.address else LOOPBACK)}.items():
        os.environ.setdefault(name, value)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("0", encoding="ascii")


def _first_line(error: BaseException) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}"[:400]


def _advice(error: Exception, job: BridgeJob) -> str:
    text = str(error)
    if "Version mismatch" in text:
        return "Use the same Python and the same Ray on this machine and on the cluster's nodes (an image is simplest)."
    if "uthenti" in text or "token" in text.lower():
        return "Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH, or RAY_AUTH_TOKEN, as the cluster has them."
    if job.address:
        return "Start one with `ray start --head`, or give executor.address=HOST:PORT of one that answers."
    return "Ray could not be started here; its logs are in /tmp/ray/session_latest/logs."
