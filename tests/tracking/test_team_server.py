"""Runs against a team's server: MLflow on a real PostgreSQL with passwords, killed and started again."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from medtest.errors import MissingSystemLibrary
from medtest.tracking.server.postgres import binaries

ROOT = Path(__file__).parents[2]
SUITE = "polyp_seg"
WRONG = {"MLFLOW_TRACKING_PASSWORD": "no"}
pytestmark = pytest.mark.slow


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
        with self.folder.with_name("server.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
        for _ in range(600):
            if self.process.poll() is not None:
                pytest.fail(self.folder.with_name("server.log").read_text())
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.uri}/health", timeout=5)  # noqa: S310 - loopback
                return
            time.sleep(0.5)
        pytest.fail("no answer")

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

    def ask(self, path, content=None, **given):
        request = urllib.request.Request(
            f"{self.uri}/api/2.0/mlflow/{path}", json.dumps(content).encode() if content else None
        )
        environment = {**self.environment, **given}
        both = f"{environment['MLFLOW_TRACKING_USERNAME']}:{environment['MLFLOW_TRACKING_PASSWORD']}"
        request.add_header("Authorization", f"Basic {base64.b64encode(both.encode()).decode()}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback
            return json.loads(answer.read())

    def children(self):
        number = self.ask(f"experiments/get-by-name?experiment_name={SUITE}")["experiment"]["experiment_id"]
        runs = self.ask("runs/search", {"experiment_ids": [number], "max_results": 100})["runs"]
        tagged = [(run, {tag["key"]: tag["value"] for tag in run["data"]["tags"]}) for run in runs]
        return [(run["info"], tags) for run, tags in tagged if "mlflow.parentRunId" in tags]

    def artifacts(self, run):
        listed = self.ask(f"artifacts/list?run_id={run['run_id']}").get("files", [])
        return {entry["path"] for entry in listed}


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
    return _medtest(home, server, "run", f"suite={SUITE}", f"model={model}", "limit=1", "workers=1", **given)


def _ended(process, *codes):
    text = process.communicate(timeout=600)[0]
    assert process.returncode in codes, text
    assert "Traceback" not in text
    return text


def test_two_runs_log_at_once_and_what_a_killed_server_missed_is_sent_once(server, tmp_path):
    for name in ("admin-password", "session-key", "pgpass", "auth.ini"):
        assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600
    with pytest.raises(urllib.error.HTTPError, match="401"):
        server.ask("experiments/search?max_results=1", **WRONG)

    both = [_run(tmp_path / name, server, "pranet") for name in ("a", "b")]
    for process in both:
        _ended(process, 0, 1)
    found = server.children()
    assert {run["status"] for run, _ in found} == {"FINISHED"}
    assert len(found) == 2
    assert all("sent" in tags for _, tags in found)
    assert {"records.parquet", "report.html", "run.json", "manifest.sha256"} <= server.artifacts(found[0][0])

    killed = _run(tmp_path / "c", server, "sanet")
    for _ in range(1200):  # the cases are being run
        if list((tmp_path / "c").glob("outputs/*/*/*/suite.yaml")) or killed.poll() is not None:
            break
        time.sleep(0.1)
    server.kill()
    text = _ended(killed, 4)
    assert "Results are whole on disk" in text
    (records,) = (tmp_path / "c").glob("outputs/*/*/*/records.parquet")
    server.start()
    assert len(server.children()) == 2

    wrong = _ended(_medtest(tmp_path / "c", server, "track", str(tmp_path / "c"), **WRONG), 4)
    assert "401" in wrong or "credential" in wrong.lower()
    before = records.read_bytes()
    assert "1 sent" in _ended(_medtest(tmp_path / "c", server, "track", str(tmp_path / "c")), 0)
    assert "0 sent" in _ended(_medtest(tmp_path / "c", server, "track", str(tmp_path / "c")), 0)
    assert "0 sent" in _ended(_medtest(tmp_path / "a", server, "track", str(tmp_path / "a")), 0)
    assert records.read_bytes() == before
    found = server.children()
    assert len(found) == 3
    assert {run["status"] for run, _ in found} == {"FINISHED"}
    server.stop()
