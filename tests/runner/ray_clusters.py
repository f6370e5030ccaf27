"""Ray's own cluster of several nodes on this machine, for tests; importing it skips where Ray is not installed."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from runner_helpers import QUICK

from medtest.runner.reporting.outcome import Limits, RunOutcome
from medtest.runner.run import run_suite
from medtest.suite.model import Invocation, Suite
from medtest.suite.schema import ExecutorBlock

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # loopback
os.environ.setdefault("RAY_worker_niceness", "0")  # else they get no time on a busy machine
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "5")  # how long a head may be away
if importlib.util.find_spec("ray") is None:  # importing it takes a second
    pytest.skip("Ray is not installed", allow_module_level=True)


_STORE = {"object_store_memory": 80 * 1024**2}


class Nodes:
    """A head without processors, which runs nothing, and nodes with one processor each.

    A run on this machine talks to the cluster through the head's node as long as it lives: Ray
    prefers the head among the nodes of a machine.

    Args:
        count: Number of nodes at the start.
        variables: Environment variables of the nodes, and of the processes that Ray starts there.
    """

    def __init__(self, count: int, variables: Mapping[str, str] | None = None) -> None:
        self._variables = dict(variables or {})
        self._start_head()
        for _ in range(count):
            self.add()

    def _start_head(self, **more: Any) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **_STORE, **more}
        )
        self._nodes: list[Any] = []

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self) -> None:
        for last in (False, False, True):
            try:
                self._nodes.append(self._cluster.add_node(num_cpus=1, env_vars=self._variables, **_STORE))
                return
            except Exception as error:  # Ray gives a node 30 s, which a busy machine may not have
                if last or "timed out during startup" not in str(error):
                    raise

    def wait_for_worker(self, seconds: float = 120.0) -> None:
        """Wait until the oldest node hosts a worker: a busy machine may start one late, after many records."""
        raylet = self._nodes[0].all_processes["raylet"][0].process.pid
        until = time.monotonic() + seconds
        while not any("WorkerHost" in name for name in _children(raylet)):
            assert time.monotonic() < until, "no worker starts on the oldest node"
            time.sleep(0.1)

    def kill_oldest(self) -> None:
        self._cluster.remove_node(self._nodes.pop(0), allow_graceful=False)

    def kill_head(self) -> None:
        self._cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)

    def kill_node_of_driver(self) -> None:
        """Kill the raylet beside the head and wait until the head (GCS), which lives on, has noticed."""
        self._cluster.head_node.kill_raylet(check_alive=False)
        until = time.monotonic() + 240.0
        while self.alive(self._cluster.head_node.node_id):
            assert time.monotonic() < until, "the head does not notice that its node is dead"
            time.sleep(0.2)

    def alive(self, node_id: str) -> bool:
        return any(node["Alive"] and node["NodeID"] == node_id for node in self._cluster.global_state.node_table())

    def restart_head(self) -> None:
        """Start a head without nodes at the address of the killed one, as an operator of a cluster does."""
        port = int(self.address.rpartition(":")[2])
        for node in self._nodes:
            node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
        self._start_head(gcs_server_port=port)

    def free_cpus(self) -> float:
        return float(self._cluster.global_state.available_resources().get("CPU", 0.0))

    def shutdown(self) -> None:
        self._cluster.shutdown()


@contextmanager
def nodes(count: int, variables: Mapping[str, str] | None = None) -> Iterator[Nodes]:
    cluster = Nodes(count, variables)
    try:
        yield cluster
    finally:
        cluster.shutdown()


def on_cluster(
    suite: Suite,
    home: Path,
    address: str | None,
    *,
    limits: Limits = QUICK,
    wait_seconds: float = 240.0,
    **options: Any,
) -> RunOutcome:
    """Run a suite on the nodes of a cluster."""
    cluster = ExecutorBlock(address=address, wait_seconds=wait_seconds)
    return run_suite(suite, Invocation(home=home, quiet=True, cluster=cluster, **options), limits=limits)


class Running:
    """A run in a thread."""

    def __init__(self, call: Callable[[], RunOutcome]) -> None:
        self.outcome: RunOutcome | None = None
        self.error: BaseException | None = None
        self._call = call
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.outcome = self._call()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def ended(self, seconds: float) -> None:
        self.thread.join(timeout=seconds)
        assert not self.thread.is_alive(), "the run goes on and on"


def rows_on_disk(home: Path) -> int:
    """Return the number of records in shards."""
    count = 0
    for shard in home.glob("outputs/*/*/*/records/shard-*.parquet"):
        try:
            count += pq.ParquetFile(shard).metadata.num_rows
        except OSError:  # merged meanwhile
            continue
    return count


def _children(pid: int) -> list[str]:
    """Return the names of a process's children without those that have ended."""
    names = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):
            names.append(Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace"))
    return names


def wait_for_rows(running: Running, home: Path, more_than: int, seconds: float = 120.0) -> int:
    """Wait until so many records are on disk, and return their number."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        count = rows_on_disk(home)
        if count > more_than:
            return count
        assert running.thread.is_alive(), f"the run ended early: {running.error or running.outcome}"
        time.sleep(0.1)
    raise AssertionError(f"{rows_on_disk(home)} records after {seconds:g} s, {more_than} wanted")
