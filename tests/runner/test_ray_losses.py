"""If any part of a Ray cluster dies in a run, the run goes on or states exactly what is gone; records are equal."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from ray_clusters import Nodes, Running, nodes, on_cluster, rows_on_disk, wait_for_rows
from runner_helpers import assert_equal_records, go, records, wait_for
from runner_parts import make_suite

from medtest.core.errors import ExitCode, MedtestError
from medtest.runner.reporting.outcome import Limits, RunOutcome
from medtest.suite.model import Suite

pytestmark = pytest.mark.slow
FREQUENT = Limits(samples=0, shard_rows=20, shard_seconds=0.5, send_seconds=0.1)
SEEDS = 14
PATIENCE = 420.0
"""Seconds for which a test waits for what a loaded machine may be slow to do."""


def _suite(home: Path) -> Suite:
    """Return a suite whose last four seeds wait for a file, so that the run is not over before the loss."""
    system = {"pause": 0.2, "gate": str(home / "open"), "when": "patient-001"}
    return make_suite(seeds=SEEDS, systems={"bright": system})


def _in_the_middle(home: Path, cluster: Nodes, kill: Callable[[], None], *, wait_seconds: float = 0.0) -> Running:
    """Start a run and kill a part once some of its records are on disk.

    Args:
        home: Home folder of the run.
        cluster: The cluster.
        kill: Kills a part, and returns when the cluster has noticed.
        wait_seconds: Patience of a run that is to end; its last four seeds then wait on.
    """
    running = Running(
        lambda: on_cluster(
            _suite(home),
            home,
            cluster.address,
            limits=FREQUENT,
            wait_seconds=wait_seconds or PATIENCE,
            batch_seconds=2 * PATIENCE,
        )
    )
    wait_for_rows(running, home, 40)
    kill()
    if not wait_seconds:
        (home / "open").touch()
    return running


def _outcome(running: Running) -> RunOutcome:
    running.ended(PATIENCE)
    assert running.error is None, running.error
    assert running.outcome is not None
    return running.outcome


def _error(running: Running) -> MedtestError:
    running.ended(PATIENCE)
    assert isinstance(running.error, MedtestError)
    return running.error


def _assert_local_records(outcome: RunOutcome, tmp_path: Path) -> None:
    assert outcome.systems[0].finished == outcome.systems[0].planned == SEEDS * 11
    local = go(make_suite(seeds=SEEDS), tmp_path / "local")
    assert_equal_records(records(outcome), records(local))


def _assert_goes_on(tmp_path: Path) -> None:
    """Call the same run on this machine: it reuses every record on disk, and records are equal."""
    home = tmp_path / "far"
    row_count = rows_on_disk(home)
    assert row_count > 40
    (home / "open").touch()
    again = go(_suite(home), home, workers=2)
    assert again.systems[0].cases_reused == row_count
    _assert_local_records(again, tmp_path)


@pytest.mark.long
def test_the_node_of_the_run_itself_dies_and_another_is_joined(tmp_path: Path) -> None:
    with nodes(2) as cluster:
        outcome = _outcome(_in_the_middle(tmp_path / "far", cluster, cluster.kill_node_of_driver))
    assert any("joined again" in notice for notice in outcome.notices), outcome.notices
    _assert_local_records(outcome, tmp_path)


def test_all_nodes_die_and_a_new_one_is_joined(tmp_path: Path) -> None:
    with nodes(2) as cluster:

        def kill() -> None:
            cluster.kill_node_of_driver()
            cluster.kill_oldest()
            cluster.kill_oldest()
            cluster.add()

        outcome = _outcome(_in_the_middle(tmp_path / "far", cluster, kill))
    _assert_local_records(outcome, tmp_path)


def test_a_head_that_is_started_again_is_joined_again(tmp_path: Path) -> None:
    with nodes(1) as cluster:

        def kill() -> None:
            cluster.kill_head()
            cluster.restart_head()
            cluster.add()

        outcome = _outcome(_in_the_middle(tmp_path / "far", cluster, kill))
    assert any("joined again" in notice for notice in outcome.notices), outcome.notices
    _assert_local_records(outcome, tmp_path)


def test_a_head_that_does_not_return_ends_the_run_with_one_message(tmp_path: Path) -> None:
    with nodes(1) as cluster:
        error = _error(_in_the_middle(tmp_path / "far", cluster, cluster.kill_head, wait_seconds=5.0))
        assert f"The Ray cluster at {cluster.address} is gone" in str(error)
    assert "run the same command again" in str(error)
    assert error.exit_code == ExitCode.MISTAKE
    _assert_goes_on(tmp_path)


def test_no_node_is_left_on_this_machine_and_the_message_says_so(tmp_path: Path) -> None:
    """The head answers, which is not enough: a program of Ray talks through a node on the same machine."""
    with nodes(1) as cluster:

        def kill() -> None:
            cluster.kill_oldest()
            cluster.kill_node_of_driver()

        error = _error(_in_the_middle(tmp_path / "far", cluster, kill, wait_seconds=60.0))
        assert "Ray's node on this machine" in str(error) and "is gone" in str(error)
        assert f"ray start --address={cluster.address}" in str(error)
    assert "room" not in str(error)
    _assert_goes_on(tmp_path)


@pytest.mark.long
def test_nodes_that_could_hold_a_worker_are_gone_and_the_message_says_so(tmp_path: Path) -> None:
    with nodes(1) as cluster:
        error = _error(_in_the_middle(tmp_path / "far", cluster, cluster.kill_oldest, wait_seconds=60.0))
    assert "no node that can hold a worker" in str(error)
    assert "1 node with 0 CPUs" in str(error)
    _assert_goes_on(tmp_path)


def test_a_worker_host_that_is_killed_costs_nothing_but_time(tmp_path: Path) -> None:
    with nodes(2) as cluster:

        def kill() -> None:
            hosts = [process for process in psutil.process_iter() if _is_host(process)]
            assert hosts, "Ray names an actor's process after its class"
            hosts[0].kill()

        outcome = _outcome(_in_the_middle(tmp_path / "far", cluster, kill))
    assert any("were given to other workers" in notice for notice in outcome.notices)
    _assert_local_records(outcome, tmp_path)


def _is_host(process: psutil.Process) -> bool:
    """Return True if a process hosts a worker for a descendant of this process (and not for another session's)."""
    try:
        is_own = psutil.Process() in process.parents()
        return is_own and "WorkerHost" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def test_a_worker_that_is_slow_to_start_is_not_called_no_room(tmp_path: Path) -> None:
    wait_seconds = 10.0
    gate = tmp_path / "open"
    (tmp_path / "sitecustomize.py").write_text(
        "import pathlib, sys, time\n"
        "while 'default_worker.py' in ' '.join(sys.orig_argv) and not pathlib.Path("
        f"{str(gate)!r}).exists(): time.sleep(0.1)\n",
        encoding="utf-8",
    )
    path = ":".join([str(tmp_path), *sys.path])
    suite = make_suite(seeds=2)
    with nodes(1, {"PYTHONPATH": path}) as cluster:
        running = Running(lambda: on_cluster(suite, tmp_path / "far", cluster.address, wait_seconds=wait_seconds))
        wait_for(lambda: cluster.free_cpus() == 0.0, PATIENCE)
        time.sleep(1.5 * wait_seconds)
        assert running.thread.is_alive(), running.error
        gate.touch()
        outcome = _outcome(running)
    assert_equal_records(records(outcome), records(go(suite, tmp_path / "local")))


@contextmanager
def _other_program(address: str) -> Iterator[None]:
    """Let another program of Ray hold the one processor of a cluster."""
    body = (
        "import ray, sys, time\n"
        "ray.init(address=sys.argv[1], log_to_driver=False)\n"
        "actor = ray.remote(num_cpus=1)(type('Other', (), {'here': lambda self: 1})).remote()\n"
        "print(ray.get(actor.here.remote()), flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", body, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline()
            yield
        finally:
            program.kill()


def test_a_cluster_in_use_by_others_is_reported(tmp_path: Path) -> None:
    with nodes(1) as cluster, _other_program(cluster.address):
        error = _error(Running(lambda: on_cluster(make_suite(), tmp_path, cluster.address, wait_seconds=5.0)))
    assert "No node of the cluster has had room for a worker for 5 s" in str(error)
    assert "2 nodes with 1 CPU, of which 0 CPUs on all nodes together are free; a worker takes 1 CPU" in str(error)
