"""Runs against a team's server: MLflow on a real PostgreSQL with passwords, killed and started again."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException

sys.path.insert(0, str(Path(__file__).parent))
from team_server import QUICK, ROOT, SUITE, free_port, team_server

from medtest.cli.team.server import wait_for_port
from medtest.report.tracking.server.postgres import binaries

ANNA = {"MLFLOW_TRACKING_USERNAME": "anna", "MLFLOW_TRACKING_PASSWORD": "one for her alone"}
WRONG = {"MLFLOW_TRACKING_PASSWORD": "no"}


def _users(server):
    from mlflow.server import get_app_client  # seconds, which collecting the fast tests need not take

    return get_app_client("basic-auth", server.uri)


@pytest.fixture
def server():
    with team_server() as started:
        yield started


def _medtest(home, server, *arguments, **variables):
    environment = {**os.environ, **server.environment, "MEDTEST_HOME": str(home), **variables}
    command = [sys.executable, "-m", "medtest", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _run(home, server, model, **variables):
    words = [f"suite={SUITE}", f"model={model}", "relations=[blur]", "limit=1", "workers=1"]
    return _medtest(home, server, "run", *words, **variables)


def _wait_for(process, *codes):
    text = process.communicate(timeout=600)[0]
    assert process.returncode in codes, text
    assert "Traceback" not in text
    return text


def test_a_port_that_is_released_a_moment_later_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as last:
        threading.Timer(1.0, last.close).start()
        wait_for_port(last.getsockname()[1])
        assert last.fileno() == -1


@pytest.mark.slow
@pytest.mark.timeout(1200)  # servers start three times, on a busy machine too
def test_two_runs_log_at_once_and_lost_results_of_a_killed_server_are_sent_once(server, tmp_path):
    for name in ("admin-password", "session-key", "pgpass", "auth.ini"):
        assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600
    with server.client(**WRONG) as client, pytest.raises(MlflowException, match="401"):
        client.search_experiments(max_results=1)

    with server.client():
        _users(server).create_user("anna", ANNA["MLFLOW_TRACKING_PASSWORD"])
    both = [_run(tmp_path / name, server, "pranet", **user) for name, user in (("a", {}), ("b", ANNA))]
    for process in both:
        _wait_for(process, 0, 1)
    above, below = server.runs()
    assert len(above) == len(below) == 2
    assert {run.info.status for run in above + below} == {"FINISHED"}
    whole, files = server.content(below[0])
    assert {"records.parquet", "report.html", "run.json", "files.zip"} <= set(files)

    killed = _run(tmp_path / "c", server, "pranet", **QUICK)
    while len(server.runs()[1]) == 2 and killed.poll() is None:  # until its own is begun
        time.sleep(0.05)
    server.kill()
    text = _wait_for(killed, 4)
    assert "complete on disk" in text
    (records,) = (tmp_path / "c").glob("outputs/*/*/*/records.parquet")
    before = records.read_bytes()
    server.start()
    assert len(server.runs()[1]) == 3

    for wrong in (WRONG, {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{free_port()}"}):
        text = _wait_for(_medtest(tmp_path / "c", server, "track", str(tmp_path / "c"), **wrong, **QUICK), 4)
        assert text.count("\n") <= 3
    with _full(server):
        text = _wait_for(_medtest(tmp_path / "c", server, "track", str(tmp_path), **QUICK), 4)
        assert "complete on disk" in text
    assert "1 sent, 2 already" in _wait_for(_medtest(tmp_path / "c", server, "track", str(tmp_path)), 0)
    assert "0 sent, 3 already" in _wait_for(_medtest(tmp_path / "c", server, "track", str(tmp_path)), 0)
    assert records.read_bytes() == before
    above, below = server.runs()
    assert len(above) == len(below) == 3
    assert {run.info.status for run in above + below} == {"FINISHED"}
    for run in below:
        points, files_of_run = server.content(run)
        assert points == whole
        assert _names(files_of_run) == _names(files)

    socket_folder, dump = server.folder / "postgres", [str(binaries() / "pg_dump"), "-w", "-U", "medtest", "-Fc"]
    passwords = {**os.environ, "PGPASSFILE": str(server.folder / "pgpass")}
    for name in ("mlflow", "users"):  # the backup that docs/teams.md names
        done = subprocess.run([*dump, "-h", str(socket_folder), name], env=passwords, capture_output=True, check=True)
        assert done.stdout.startswith(b"PGDMP")

    second = _medtest(tmp_path, server, "server", "--folder", str(server.folder), "--port", str(free_port()))
    assert "another medtest server" in _wait_for(second, 2)
    server.process.kill()  # it alone: what it had started ends with it
    server.process.wait()
    server.start()
    assert len(server.runs()[1]) == 3
    server.stop()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_model_of_the_registry_is_tested_and_named(server, tmp_path):
    with server.client():
        client = _users(server)
        client.create_user("anna", ANNA["MLFLOW_TRACKING_PASSWORD"])
    done = subprocess.run([sys.executable, "-c", _REGISTER], env={**os.environ, **server.environment}, check=False)
    assert done.returncode == 0
    words = [f"suite={SUITE}", "model=mlflow", "uri=models:/grey/1", "trust_code=true", "relations=[blur]", "workers=1"]
    words += [
        "seeds.phantoms.count=1",
        "gates=[{max_percent: 100, max_source_failed_percent: 100}]",
        "tracking.tag_model=true",
        "tracking.alias=best",
    ]
    text = _wait_for(_medtest(tmp_path / "a", server, "run", *words), 0, 4)
    assert "grey/1: tag medtest.polyp_seg=passed, alias best points to this version." in text
    with server.client() as admin:
        version = admin.get_model_version_by_alias("grey", "best")
        tested = admin.get_run(version.tags["medtest.polyp_seg.run"])
    assert tested.data.tags["model_registry"] == "grey/1" and tested.info.status == "FINISHED"

    with server.client():
        client.grant_user_permission("anna", "registered_model", "grey", "DENY")
    text = _wait_for(_medtest(tmp_path / "b", server, "run", *words, **ANNA), 2)
    assert "models:/grey/1" in text and "403" in text
    above, below = server.runs()
    assert len(above) == len(below) == 1


_REGISTER = """
import mlflow, torch
mlflow.set_experiment("models")
net = torch.nn.Conv2d(3, 1, 1)
torch.nn.init.zeros_(net.weight)
torch.nn.init.ones_(net.bias)  # everything is lesion, so that no source scores 0
with mlflow.start_run():
    mlflow.pytorch.log_model(
        net, name="a", serialization_format="pickle", pip_requirements=["torch"],
        registered_model_name="grey",
    )
"""


def _names(files):
    """Return the files of a run; MLflow names pictures after the time at which they were logged."""
    return sorted(re.sub(r"\+timestamp\+\d+\+[0-9a-f-]{36}", "", name) for name in files)


@contextlib.contextmanager
def _full(server):
    """Make the store of artifacts refuse every file."""
    folder = server.folder / "artifacts"
    folder.rename(server.folder / "kept")
    folder.write_bytes(b"")
    try:
        yield
    finally:
        folder.unlink()
        (server.folder / "kept").rename(folder)
