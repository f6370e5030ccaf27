"""Parts of a cluster besides Ray: early messages, folders on nodes, returned files, blame."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
import stat
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from runner_helpers import job_of

from medtest.core.errors import MedtestError, UserMistakes
from medtest.runner.cluster.bridge import _advice, _unpacked
from medtest.runner.cluster.chosen import cluster_of
from medtest.runner.cluster.connection import Connection
from medtest.runner.cluster.host import WorkerHost
from medtest.runner.cluster.node import NodeCache, code_sha256, machine
from medtest.runner.cluster.ray_cluster import RayCluster
from medtest.runner.cluster.ray_worker import RayWorker, _keep
from medtest.runner.cluster.talk import (
    BridgeJob,
    ClusterJoined,
    ClusterSeen,
    HostStart,
    KeptFile,
    NodeFacts,
    WorkerEnded,
    WorkerReserved,
)
from medtest.runner.pool.messages import Device, Gone, Ready
from medtest.runner.pool.worker import Inbox, Worker
from medtest.suite.compose import load
from medtest.suite.schema import ExecutorBlock


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"address": "ray://head:10001"}, "executor.address"),
        ({"address": "head"}, "executor.address"),
        ({"wheel": "nowhere.whl"}, "executor.wheel"),
    ],
)
def test_impossible_settings_of_a_cluster_are_refused_at_once(
    options: dict[str, Any], key: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with pytest.raises(UserMistakes, match=key):
        cluster_of(ExecutorBlock(name="ray", **options))


def test_without_ray_the_message_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserMistakes, match=r"pip install 'medtest\[ray\]'"):
        cluster_of(ExecutorBlock(name="ray"))
    assert cluster_of(ExecutorBlock()) is None


def test_a_nodes_folder_is_private_and_does_not_outlive_its_owner() -> None:
    cache = NodeCache()
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    (cache.folder / "deep").mkdir()
    other = NodeCache()
    assert cache.folder.is_dir(), "its owner lives"
    code = "from medtest.runner.cluster.node import NodeCache as C; import os; print(C().folder, flush=1); os._exit(9)"
    dead = Path(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
    assert dead.is_dir()
    NodeCache().remove()
    assert not dead.exists(), "the next one on the node clears up after one that was killed"
    for node_cache in (cache, other):
        node_cache.remove()
        assert not node_cache.folder.exists()


@pytest.mark.parametrize("path", ["../escaped.png", "/escaped.png", "a/../../escaped.png"])
def test_a_file_that_comes_back_stays_in_its_folder(path: str, tmp_path: Path) -> None:
    content = b"pixels"
    with pytest.raises(MedtestError, match="other content"):
        _keep(tmp_path / "outputs", KeptFile(path, hashlib.sha256(content).hexdigest(), content))
    assert not list(tmp_path.rglob("escaped*"))


def test_a_file_that_comes_back_is_the_one_that_was_sent(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"pixels").hexdigest()
    _keep(tmp_path, KeptFile("suite/crafted/a.png", digest, b"pixels"))
    assert (tmp_path / "suite/crafted/a.png").read_bytes() == b"pixels"
    with pytest.raises(MedtestError, match="other content"):
        _keep(tmp_path, KeptFile("suite/crafted/b.png", digest, b"pixelz"))
    assert [path.name for path in tmp_path.rglob("*.*")] == ["a.png"]


def _cluster(tmp_path: Path, **more: Any) -> RayCluster:
    return RayCluster(ExecutorBlock().model_copy(update=more), tmp_path / "outputs")


def _facts(**more: Any) -> NodeFacts:
    defaults: dict[str, Any] = {"node": "10.0.0.7", "code": code_sha256(), "versions": {}, "shares": True}
    return NodeFacts(**{**defaults, "same_machine": False, "cache": "/cache", **more})


def test_a_node_with_another_medtest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MedtestError, match=r"10\.0\.0\.7[\s\S]*executor\.wheel"):
        _cluster(tmp_path).begin(job_of(tmp_path), _facts(code="0" * 64))


def test_a_node_with_another_torch_is_reported_once(tmp_path: Path) -> None:
    cluster = _cluster(tmp_path)
    for _ in range(2):
        cluster.begin(job_of(tmp_path), _facts(versions={"numpy": "1.0"}))
    assert sum("numpy 1.0" in notice for notice in cluster.notices) == 1


def test_a_node_that_does_not_share_the_folder_keeps_files_in_its_own(tmp_path: Path) -> None:
    cluster = _cluster(tmp_path)
    job = job_of(tmp_path, shared=str(tmp_path / "outputs" / ".answers"))
    begin = cluster.begin(job, _facts(shares=False))
    sent = pickle.loads(begin.job)  # noqa: S301 - our own
    assert sent.folders == ("/cache/outputs/suite/system/abc",)
    assert sent.shared == "/cache/answers", "SQLite is not shared between machines"
    assert begin.kept == "/cache/outputs"
    assert not cluster.draws
    near = pickle.loads(_cluster(tmp_path).begin(job, _facts(same_machine=True)).job)  # noqa: S301 - our own
    assert near == job


def test_a_gpu_that_no_worker_was_given_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes, match=r"executor\.gpus"):
        _cluster(tmp_path).device("cuda:0", needed=True)
    assert _cluster(tmp_path).device("auto", needed=True) == "cpu"
    assert _cluster(tmp_path, gpus=1.0).device("auto", needed=True) == "cuda:0"
    assert _cluster(tmp_path, gpus=1.0).device("cpu", needed=True) == "cpu"


def test_a_host_passes_on_payloads_in_order_for_any_order_of_calls() -> None:
    host = WorkerHost(("/nowhere", "x"), machine())
    try:
        facts = host.facts("here")
        assert facts.same_machine
        assert not facts.shares
        payloads: list[bytes] = []
        host._worker = SimpleNamespace(_send=payloads.append, kill=lambda: None)  # type: ignore[assignment]
        for number in (2, 0, 1):
            host.give(number, str(number).encode())
        assert payloads == [b"0", b"1", b"2"]
    finally:
        host.close()
    assert not Path(facts.cache).exists()


def test_a_host_runs_the_worker_process_of_local_runs(tmp_path: Path) -> None:
    """The actor's own class, its process and a job of a suite, without Ray."""
    host = WorkerHost(("/nowhere", "x"), machine())
    job = job_of(tmp_path)
    begin = HostStart(
        session=job.session,
        threads=1,
        job=pickle.dumps(job),
        folder=os.getcwd(),
        path=tuple(sys.path),
        whole_path=True,
    )
    assert host.start(begin) == ""
    try:
        messages: list[Any] = []
        while not any(isinstance(message, Ready) for message in messages):
            messages += [pickle.loads(packed) for packed in host.take(5.0)[0]]  # noqa: S301 - our own
        assert isinstance(messages[0], Device)
        host.give(0, pickle.dumps(None))
        ended = None
        while ended is None:
            ended = host.take(5.0)[2]
        assert ended[0] == "ended with exit code 0"
    finally:
        host.close()


def test_a_wheel_is_unpacked_for_ray_with_what_names_its_version(tmp_path: Path) -> None:
    wheel = tmp_path / "medtest-9.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("medtest/__init__.py", "")
        packed.writestr("medtest-9.9.dist-info/METADATA", "Name: medtest\nVersion: 9.9\n")
    folders = _unpacked(wheel, tmp_path / "out")
    assert [Path(folder).name for folder in folders] == ["medtest", "medtest-9.9.dist-info"]
    assert Path(folders[0], "__init__.py").is_file()


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("Version mismatch: The cluster was started with: Ray: 2.50 Python: 3.12", "same Python and the same Ray"),
        ("Token authentication is enabled but no authentication token was found", "RAY_AUTH_TOKEN"),
        ("Could not find any running Ray instance", "ray start --head"),
    ],
)
def test_errors_of_ray_come_with_advice(error: str, advice: str) -> None:
    job = BridgeJob(
        address="auto", cpus=1.0, gpus=0.0, wheel="", start_cpus=None, environment={}, probe=("/nowhere", "x")
    )
    assert advice in _advice(RuntimeError(error), job)


def _seen(**more: Any) -> ClusterSeen:
    facts = {"nodes": 2, "cpus": 4.0, "gpus": 0.0, "free_cpus": 0.0, "free_gpus": 0.0, "room": 4}
    return ClusterSeen(**{**facts, **more})


def _joined(state: ClusterSeen) -> ClusterJoined:
    return ClusterJoined(address="10.0.0.5:6379", here="10.0.0.7", seen=state, seconds=0.1)


def _open_cluster(tmp_path: Path, state: ClusterSeen, **more: Any) -> RayCluster:
    """Return a cluster in the state of having joined; it has no bridge."""
    cluster = _cluster(tmp_path, wait_seconds=0.0, **more)
    job = BridgeJob(
        address="auto", cpus=1.0, gpus=0.0, wheel="", start_cpus=None, environment={}, probe=("/nowhere", "x")
    )
    cluster._connection = Connection(job, cluster, 0.0)
    cluster._connection._take(_joined(state))
    cluster.seen(state)
    return cluster


@pytest.mark.parametrize(
    ("state", "settings", "message"),
    [
        (
            _seen(),
            {},
            "2 nodes with 4 CPUs, of which 0 CPUs on all nodes together are free; a worker takes 1 CPU of",
        ),
        (
            _seen(gpus=1.0, free_cpus=2.5, room=1),
            {"gpus": 0.5},
            "4 CPUs and 1 GPU, of which 2.5 CPUs and 0 GPUs on all nodes .* a worker takes 1 CPU and 0.5 GPUs",
        ),
        (
            _seen(nodes=1, cpus=0.0, room=0),
            {},
            r"no node that can hold a worker \(1 CPU\) for 0 s: it has 1 node with",
        ),
    ],
)
def test_what_a_cluster_lacks_is_stated_in_figures(
    state: ClusterSeen, settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    cluster = _open_cluster(tmp_path, state, **settings)
    cluster.check()  # no worker waits
    RayWorker(job_of(tmp_path), Inbox(), cluster)
    with pytest.raises(MedtestError, match=message):
        cluster.check()


def test_a_worker_with_room_gets_time_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from medtest.runner.cluster import ray_cluster

    cluster = _open_cluster(tmp_path, _seen())
    for _ in range(2):
        worker = RayWorker(job_of(tmp_path), Inbox(), cluster)
    cluster.heard(WorkerReserved(2, "10.0.0.9"))
    assert (worker.waits, worker.reserved, worker.deadline) == (0.0, "10.0.0.9", None)
    cluster.check()
    monkeypatch.setattr(ray_cluster, "_HOST_SECONDS", 0.0)
    with pytest.raises(MedtestError, match=r"10\.0\.0\.9 has room for a worker, but Ray has started no process"):
        cluster.check()


def test_workers_that_had_a_node_are_lost_with_the_cluster_and_others_wait_on(tmp_path: Path) -> None:
    cluster = _open_cluster(tmp_path, _seen())
    inbox: Inbox[tuple[Worker, Any]] = Inbox()
    had, waits = (RayWorker(job_of(tmp_path), inbox, cluster) for _ in range(2))
    cluster.heard(WorkerReserved(1, "10.0.0.9"))
    cluster.lost("its head died")
    cluster.heard(WorkerEnded(number=1, death="ended"))  # too late
    assert inbox.get_nowait() == (had, Gone())
    assert inbox.empty()
    assert had.vanished
    assert had.death() == "was lost with the Ray cluster (its head died)"
    waits.kill()
    waits.kill()
    assert inbox.get_nowait() == (waits, Gone())
    assert inbox.empty(), "a worker is gone once"


def test_where_workers_live_is_chosen_on_the_command_line(tmp_path: Path) -> None:
    near = load("polyp_seg", ["model=pranet"])
    far = load("polyp_seg", ["model=pranet", "executor=ray", "executor.address=10.0.0.5:6379", "executor.gpus=0.5"])
    assert near.options.executor == ExecutorBlock()
    assert far.options.executor.name == "ray"
    assert (far.options.executor.address, far.options.executor.gpus) == ("10.0.0.5:6379", 0.5)
    assert near.suite == far.suite, "it enters no digest"
    with pytest.raises(UserMistakes, match="did you mean: ray"):
        load("polyp_seg", ["model=pranet", "executor=rays"])


def test_a_node_without_the_data_says_which_folder_it_lacks(tmp_path: Path) -> None:
    host = WorkerHost(("/nowhere", "x"), machine())
    try:
        begin = _cluster(tmp_path).begin(replace(job_of(tmp_path), data="/data/of/the/head"), _facts(same_machine=True))
        message = host.start(begin)
        assert "has no folder /data/of/the/head" in message
        assert "data=s3://" in message
    finally:
        host.close()
