"""Ray's driver, in a separate process: a dying cluster ends this process but not the run.

It starts or joins a cluster, creates an actor for each requested worker, and relays messages. It watches the nodes:
when its own node dies, Ray ends all actors started through it and starts no others, so that this process reports the
loss and ends, and the run's process starts another. Ray sends no usage statistics and opens no dashboard, and a Ray
started here listens on loopback only.
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
    BridgeCommand,
    BridgeJob,
    ClusterJoined,
    ClusterSeen,
    CutOff,
    NoCluster,
    Report,
)

_ANSWER_SECONDS = 10.0
_OFF = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token", "RAY_worker_niceness": "0"}
"""Settings of a Ray started here: its address is 127.0.0.1, clients need the token in the home folder, and its workers
have the niceness of local ones (Ray's default is 15).
"""
_TRIES = 3
"""Attempts to start Ray here if it times out, as it does after 30 s on a busy machine."""


class Bridge:
    """Ray's driver as the session of a worker process.

    Args:
        job: The job of the bridge.
        send: Sends a report through the pipe to the run's process.
        own_process: True.

    Attributes:
        job: The job of the bridge.
        ray: The library, once it is imported.
        host: The class of actors, wrapped for Ray.
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
        """Start or join the cluster and report success, or the reason for failure."""
        _restore_process_settings(self.job)
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
                seen=self._summarise_nodes(nodes),
                seconds=time.monotonic() - started,
            )
        except ImportError as error:
            self._send(NoCluster(f"no Ray ({error})", "Install it: pip install 'medtest[ray]'."))
            return False
        except Exception as error:  # noqa: BLE001 - Ray raises many kinds; the run's process reports them in one message
            self._send(NoCluster(first_line(error), _advice(error, self.job)))
            return False
        self._send(joined)
        threading.Thread(target=self._watch, args=(joined.seen,), name="nodes", daemon=True).start()
        return True

    def _join(self) -> None:
        job = self.job
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if job.address:
            _check_listening(job.address)
            options["address"] = job.address
        else:
            options |= {"address": "local", "include_dashboard": False, "num_cpus": job.start_cpus}
        with tempfile.TemporaryDirectory(
            prefix="medtest-wheel-"
        ) as folder:  # Ray has sent the folder once init returns
            if job.wheel:
                options["runtime_env"] = {"py_modules": _unpacked(Path(job.wheel), Path(folder))}
            self._init(options)
        from medtest.runner.cluster.host import WorkerHost

        self.host = self.ray.remote(WorkerHost)

    def _init(self, options: dict[str, Any]) -> None:
        for number in range(1, _TRIES + 1):
            try:
                self.ray.init(**options)
                return
            except Exception as error:
                if self.job.address or "timed out during startup" not in str(error) or number == _TRIES:
                    raise
                self.ray.shutdown()

    def _summarise_nodes(self, nodes: Sequence[Mapping[str, Any]]) -> ClusterSeen:
        """Return a summary of the cluster's nodes from the list of :func:`ray.nodes`."""
        alive = [node["Resources"] for node in nodes if node["Alive"]]
        free = self.ray.available_resources()
        shares = {"CPU": self.job.cpus, "GPU": self.job.gpus}
        return ClusterSeen(
            nodes=len(alive),
            cpus=sum(resources.get("CPU", 0.0) for resources in alive),
            gpus=sum(resources.get("GPU", 0.0) for resources in alive),
            free_cpus=float(free.get("CPU", 0.0)),
            free_gpus=float(free.get("GPU", 0.0)),
            room=sum(
                int(min(resources.get(name, 0.0) // share for name, share in shares.items() if share > 0))
                for resources in alive
            ),
        )

    def _watch(self, previous: ClusterSeen) -> None:
        """Report nodes that come and go. If the head is silent, Ray itself ends this process."""
        while True:
            time.sleep(WAIT_SECONDS)
            self.end_if_cut_off()
            with suppress(Exception):
                current = self._summarise_nodes(self.ray.nodes())
                if current != previous:
                    previous = current
                    self._send(previous)

    def run(self, command: BridgeCommand) -> None:
        """Execute a command of the run's process."""
        action, number, content = command
        actor = self._actors.get(number)
        if action == "open" and actor is None:  # a worker may be requested twice if another bridge was lost
            self._actors[number] = Actor(number, self)
        elif actor is not None:
            match action:
                case "start":
                    actor.start(content)
                case "give":
                    actor.give(content)
                case "kill":
                    actor.kill()
                case "drop":
                    del self._actors[number]
                    actor.drop()

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        for actor in list(self._actors.values()):
            actor.drop()
        for actor in list(self._actors.values()):
            actor.thread.join(timeout=WAIT_SECONDS)
        self.ray.shutdown()

    # interface for actors

    def report(self, report: Report) -> None:
        """Send a report to the run's process."""
        self._send(report)

    def end_if_cut_off(self) -> None:
        """End this process if the node through which it is connected to the cluster is dead."""
        with self._leaving:
            try:
                nodes = self.ray.nodes()
                if any(node["Alive"] and node["NodeID"] == self._node for node in nodes):
                    return
                nodes_seen = self._summarise_nodes(nodes)
            except Exception:  # noqa: BLE001 - whatever Ray raises of a head that is away; it ends this process itself
                return
            self._send(CutOff(nodes_seen))
            os._exit(0)


def _unpacked(wheel: Path, folder: Path) -> list[str]:
    """Unpack a wheel and return its folders: for a wheel file Ray would download all dependencies on each node.

    Raises:
        zipfile.BadZipFile: It is not a wheel.
    """
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return [str(path) for path in sorted(folder.iterdir()) if path.is_dir()]


def _check_listening(address: str) -> None:
    """Check that a server listens at an address; Ray itself would try for minutes.

    Raises:
        OSError: No server does.
    """
    host, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS).close()


def _restore_process_settings(job: BridgeJob) -> None:
    """Undo the settings of a worker process, which child processes would inherit."""
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
