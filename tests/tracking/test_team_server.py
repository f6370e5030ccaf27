"""Runs against a team's server: MLflow on a real PostgreSQL with passwords, killed and started again."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.server import get_app_client

from medtest.cli.team.server import wait_for_port
from medtest.errors import MissingSystemLibrary
from medtest.tracking.server.postgres import binaries

ROOT = Path(__file__).parents[2]
SUITE = "polyp_seg"
QUICK = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
ANNA = {"MLFLOW_TRACKING_USERNAME": "anna", "MLFLOW_TRACKING_PASSWORD": "one for her alone"}
WRONG = {"MLFLOW_TRACKING_PASSWORD": "no"}


def _free_port():
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class TeamServer:
    def __init__(self, folder):
        self.folder, self.port, self.process = folder, _free_port(), None

    @property
    def uri(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [sys.executable, "-m", "medtest", "server", "--folder", str(self.folder), "--port", str(self.port)]
        said = self.folder.with_name("server.log")
        with said.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
        for _ in range(600):
            if self.process.poll() is not None:
                break
            if "MLflow for a team" in said.read_text():  # an answer alone may be one of the server before it
                urllib.request.urlopen(f"{self.uri}/health", timeout=60)  # noqa: S310 - loopback
                return
            time.sleep(0.5)
        pytest.fail(said.read_text())

    def kill(self):
        """End every process of the server at once, the database's too, as a power cut would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(timeout=60) == 0

    @property
    def environment(self):
        password = (self.folder / "admin-password").read_text()
        return {
            "MLFLOW_TRACKING_URI": self.uri,
            "MLFLOW_TRACKING_USERNAME": "admin",
            "MLFLOW_TRACKING_PASSWORD": password,
        }

    @contextlib.contextmanager
    def client(self, **given):
        """MLflow's own, with the admin's password."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.environment, **given}.items():
                patch.setenv(name, value)
            yield MlflowClient(tracking_uri=self.uri)

    def runs(self):
        """Every run of the suite's experiment by its kind: those that stand above, and the systems'."""
        with self.client() as client:
            number = client.get_experiment_by_name(SUITE).experiment_id
            runs = client.search_runs([number], max_results=100)
        below = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
        return [run for run in runs if run not in below], below

    def content(self, run):
        """What a run holds: points of each metric, and its files."""
        with self.client() as client:
            points = {name: len(client.get_metric_history(run.info.run_id, name)) for name in run.data.metrics}
            files, folders = {}, [""]
            while folders:
                for entry in client.list_artifacts(run.info.run_id, folders.pop() or None):
                    if entry.is_dir:
                        folders.append(entry.path)
                    else:
                        files[entry.path] = entry.file_size
        return points, files


@pytest.fixture
def server():
    try:
        binaries()
    except MissingSystemLibrary as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(prefix="mt-") as folder:  # short, and open to the database's user
        Path(folder).chmod(0o755)
        made = TeamServer(Path(folder) / "team")
        made.start()
        try:
            yield made
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(made.process.pid, signal.SIGKILL)
            made.process.wait()


def _medtest(home, server, *arguments, **given):
    environment = {**os.environ, **server.environment, "MEDTEST_HOME": str(home), **given}
    command = [sys.executable, "-m", "medtest", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _run(home, server, model, **given):
    words = [f"suite={SUITE}", f"model={model}", "relations=[blur]", "limit=1", "workers=1"]
    return _medtest(home, server, "run", *words, **given)


def _ended(process, *codes):
    text = process.communicate(timeout=600)[0]
    assert process.returncode in codes, text
    assert "Traceback" not in text
    return text


def test_a_port_that_is_let_go_of_a_moment_later_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as last:
        threading.Timer(1.0, last.close).start()
        wait_for_port(last.getsockname()[1])
        assert last.fileno() == -1


@pytest.mark.slow
@pytest.mark.timeout(1200)  # servers start three times, on a busy machine too
def test_two_runs_log_at_once_and_what_a_killed_server_missed_is_sent_once(server, tmp_path):
    for name in ("admin-password", "session-key", "pgpass", "auth.ini"):
        assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600
    with server.client(**WRONG) as client, pytest.raises(MlflowException, match="401"):
        client.search_experiments(max_results=1)

    with server.client():
        get_app_client("basic-auth", server.uri).create_user("anna", ANNA["MLFLOW_TRACKING_PASSWORD"])
    both = [_run(tmp_path / name, server, "pranet", **who) for name, who in (("a", {}), ("b", ANNA))]
    for process in both:
        _ended(process, 0, 1)
    above, below = server.runs()
    assert len(above) == len(below) == 2
    assert {run.info.status for run in above + below} == {"FINISHED"}
    whole, files = server.content(below[0])
    assert {"records.parquet", "report.html", "run.json", "manifest.sha256"} <= set(files)

    killed = _run(tmp_path / "c", server, "pranet", **QUICK)
    while len(server.runs()[1]) == 2 and killed.poll() is None:  # until its own is begun
        time.sleep(0.05)
    server.kill()
    text = _ended(killed, 4)
    assert "Results are whole on disk" in text
    (records,) = (tmp_path / "c").glob("outputs/*/*/*/records.parquet")
    before = records.read_bytes()
    server.start()
    assert len(server.runs()[1]) == 3

    for wrong in (WRONG, {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{_free_port()}"}):
        text = _ended(_medtest(tmp_path / "c", server, "track", str(tmp_path / "c"), **wrong, **QUICK), 4)
        assert text.count("\n") <= 3
    with _full(server):
        text = _ended(_medtest(tmp_path / "c", server, "track", str(tmp_path), **QUICK), 4)
        assert "Results are whole on disk" in text
    assert "1 sent, 2 held" in _ended(_medtest(tmp_path / "c", server, "track", str(tmp_path)), 0)
    assert "0 sent, 3 held" in _ended(_medtest(tmp_path / "c", server, "track", str(tmp_path)), 0)
    assert records.read_bytes() == before
    above, below = server.runs()
    assert len(above) == len(below) == 3
    assert {run.info.status for run in above + below} == {"FINISHED"}
    for run in below:
        points, there = server.content(run)
        assert points == whole
        assert _names(there) == _names(files)

    socket_folder, dump = server.folder / "postgres", [str(binaries() / "pg_dump"), "-w", "-U", "medtest", "-Fc"]
    passwords = {**os.environ, "PGPASSFILE": str(server.folder / "pgpass")}
    for name in ("mlflow", "users"):  # the backup that docs/teams.md names
        done = subprocess.run([*dump, "-h", str(socket_folder), name], env=passwords, capture_output=True, check=True)
        assert done.stdout.startswith(b"PGDMP")

    second = _medtest(tmp_path, server, "server", "--folder", str(server.folder), "--port", str(_free_port()))
    assert "another medtest server serves" in _ended(second, 2)
    server.process.kill()  # it alone: what it had started ends with it
    server.process.wait()
    server.start()
    assert len(server.runs()[1]) == 3
    server.stop()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_model_of_the_registry_is_tested_and_told(server, tmp_path):
    with server.client():
        client = get_app_client("basic-auth", server.uri)
        client.create_user("anna", ANNA["MLFLOW_TRACKING_PASSWORD"])
    done = subprocess.run([sys.executable, "-c", _REGISTER], env={**os.environ, **server.environment}, check=False)
    assert done.returncode == 0
    words = [f"suite={SUITE}", "model=mlflow", "uri=models:/grey/1", "trust_code=true", "relations=[blur]", "workers=1"]
    words += ["seeds.phantoms.count=1", "gates=[{max_percent: 100}]", "tracking.tag_model=true", "tracking.alias=best"]
    text = _ended(_medtest(tmp_path / "a", server, "run", *words), 0, 4)
    assert "grey/1: tag medtest.polyp_seg=held, alias best is this version." in text
    with server.client() as admin:
        version = admin.get_model_version_by_alias("grey", "best")
        tested = admin.get_run(version.tags["medtest.polyp_seg.run"])
    assert tested.data.tags["model_registry"] == "grey/1" and tested.info.status == "FINISHED"

    with server.client():
        client.grant_user_permission("anna", "registered_model", "grey", "DENY")
    text = _ended(_medtest(tmp_path / "b", server, "run", *words, **ANNA), 2)
    assert "models:/grey/1" in text and "403" in text
    above, below = server.runs()
    assert len(above) == len(below) == 1


_REGISTER = """
import mlflow, torch
mlflow.set_experiment("models")
with mlflow.start_run():
    mlflow.pytorch.log_model(
        torch.nn.Conv2d(3, 1, 1), name="a", serialization_format="pickle", pip_requirements=["torch"],
        registered_model_name="grey",
    )
"""


def _names(files):
    """Files of a run; MLflow calls pictures by the time at which they were logged."""
    return sorted(re.sub(r"\+timestamp\+\d+\+[0-9a-f-]{36}", "", name) for name in files)


@contextlib.contextmanager
def _full(server):
    """A store of artifacts that takes no file."""
    there = server.folder / "artifacts"
    there.rename(server.folder / "kept")
    there.write_bytes(b"")
    try:
        yield
    finally:
        there.unlink()
        (server.folder / "kept").rename(there)
