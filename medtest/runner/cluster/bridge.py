"""Ray's driver, in a process of its own: a cluster that dies takes this process with it and not the run.

It starts or joins a cluster, makes an actor for each worker that is wanted, and passes on what is said. It watches the
nodes: when its own dies, Ray ends every actor that was started through it and starts no other, so that this process
says so and ends, and the run's process starts another. Ray sends home no figures of its use, opens no dashboard, and
one that is started here listens on loopback alone.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from medtest.runner.cluster.actor import WAIT_SECONDS, Actor, first_line
from medtest.runner.cluster.talk import (
    BridgeJob,
    ClusterJoined,
    ClusterSeen,
    Command,
    CutOff,
    Drop,
    Give,
    Kill,
    NoCluster,
    Open,
    Report,
    Start,
)

_ANSWER_SECONDS = 10.0
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

    Attributes:
        job: What it is for.
        ray: The library, once it is open.
        host: The class of actors, as Ray wants it.
    """

    def __init__(self, job: BridgeJob, send: Callable[[Any], None], *, own_process: bool = True) -> None:
        self.job = job
        self.ray: Any = None
        self.host: Any = None
        self._send = send
        self._actors: dict[int, Actor] = {}
        self._node = ""
        self._leaving = threading.Lock()

    def open(self) -> bool:
        """Start or join the cluster and say so, or why that cannot be."""
        _be_ordinary(self.job)
        started = time.monotonic()
        try:
            import ray

            self.ray = ray
            self._join()
            context = ray.get_runtime_context()
            self._node = context.get_node_id()
            nodes = ray.nodes()
            joined = ClusterJoined(
                address=str(context.gcs_address),
                here=next((str(node["NodeManagerAddress"]) for node in nodes if node["NodeID"] == self._node), ""),
                seen=self._seen(nodes),
                seconds=time.monotonic() - started,
            )
        except ImportError as error:
            self._send(NoCluster(f"no Ray ({error})", "Install it: pip install 'medtest[ray]'."))
            return False
        except Exception as error:  # noqa: BLE001 - Ray raises of every kind; the run's process says it in one message
            self._send(NoCluster(first_line(error), _advice(error, self.job)))
            return False
        self._send(joined)
        threading.Thread(target=self._watch, args=(joined.seen,), name="nodes", daemon=True).start()
        return True

    def _join(self) -> None:
        job = self.job
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

        self.host = self.ray.remote(WorkerHost)

    def _init(self, how: dict[str, Any]) -> None:
        for number in range(1, _TRIES + 1):
            try:
                self.ray.init(**how)
                return
            except Exception as error:
                if self.job.address or "timed out during startup" not in str(error) or number == _TRIES:
                    raise
                self.ray.shutdown()

    def _seen(self, nodes: Sequence[Mapping[str, Any]]) -> ClusterSeen:
        """Return what is known of the cluster's nodes, as :func:`ray.nodes` lists them."""
        alive = [node["Resources"] for node in nodes if node["Alive"]]
        free = self.ray.available_resources()
        wanted = {"CPU": self.job.cpus, "GPU": self.job.gpus}
        return ClusterSeen(
            nodes=len(alive),
            cpus=sum(has.get("CPU", 0.0) for has in alive),
            gpus=sum(has.get("GPU", 0.0) for has in alive),
            free_cpus=float(free.get("CPU", 0.0)),
            free_gpus=float(free.get("GPU", 0.0)),
            room=sum(
                int(min(has.get(name, 0.0) // share for name, share in wanted.items() if share > 0)) for has in alive
            ),
        )

    def _watch(self, seen: ClusterSeen) -> None:
        """Tell of nodes that come and go. Where the head is silent, Ray itself ends this process."""
        while True:
            time.sleep(WAIT_SECONDS)
            self.end_if_cut_off()
            with suppress(Exception):
                now = self._seen(self.ray.nodes())
                if now != seen:
                    seen = now
                    self._send(seen)

    def run(self, command: Command) -> None:
        """Do what the run's process asks."""
        match command:
            case Open(number=number):
                if number not in self._actors:  # it may be asked for twice where another bridge was lost
                    self._actors[number] = Actor(number, self)
            case Start(number=number, begin=begin):
                if (actor := self._actors.get(number)) is not None:
                    actor.start(begin)
            case Give(number=number, content=content):
                if (actor := self._actors.get(number)) is not None:
                    actor.give(content)
            case Kill(number=number):
                if (actor := self._actors.get(number)) is not None:
                    actor.kill()
            case Drop(number=number):
                if (actor := self._actors.pop(number, None)) is not None:
                    actor.drop()

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        for actor in list(self._actors.values()):
            actor.drop()
        for actor in list(self._actors.values()):
            actor.thread.join(timeout=WAIT_SECONDS)
        self.ray.shutdown()

    # what an actor asks of it

    def report(self, what: Report) -> None:
        """Tell the run's process."""
        self._send(what)

    def end_if_cut_off(self) -> None:
        """End this process if the node through which it speaks to the cluster is dead."""
        with self._leaving:
            try:
                nodes = self.ray.nodes()
                if any(node["Alive"] and node["NodeID"] == self._node for node in nodes):
                    return
                seen = self._seen(nodes)
            except Exception:  # noqa: BLE001 - whatever Ray raises of a head that is away; it ends this process itself
                return
            self._send(CutOff(seen))
            os._exit(0)


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


def _advice(error: Exception, job: BridgeJob) -> str:
    text = str(error)
    if "Version mismatch" in text:
        return "Use the same Python and the same Ray on this machine and on the cluster's nodes (an image is simplest)."
    if "uthenti" in text or "token" in text.lower():
        return "Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH, or RAY_AUTH_TOKEN, as the cluster has them."
    if job.address:
        return "Start one with `ray start --head`, or give executor.address=HOST:PORT of one that answers."
    return "Ray could not be started here; its logs are in /tmp/ray/session_latest/logs."
