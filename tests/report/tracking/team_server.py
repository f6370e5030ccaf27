"""``medtest server`` as a process, on a real PostgreSQL, for tests of what is sent to it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from medtest.core.errors import MissingSystemLibrary
from medtest.report.tracking.server.postgres import binaries

ROOT = Path(__file__).parents[3]
SUITE = "polyp_seg"
QUICK = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}


def free_port():
    with contextlib.closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class TeamServer:
    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None

    @property
    def uri(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def log_file(self):
        """Return the file of its output."""
        return self.folder.with_name("server.log")

    def start(self):
        command = [sys.executable, "-m", "medtest", "server", "--folder", str(self.folder), "--port", str(self.port)]
        log_file = self.log_file
        with log_file.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
        for _ in range(600):
            if self.process.poll() is not None:
                break
            if "MLflow for a team" in log_file.read_text():  # an answer alone may be one of the server before it
                urllib.request.urlopen(f"{self.uri}/health", timeout=60)  # noqa: S310 - loopback
                return
            time.sleep(0.5)
        pytest.fail(log_file.read_text())

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
    def client(self, **variables):
        """Yield MLflow's client with the admin's password."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.environment, **variables}.items():
                patch.setenv(name, value)
            yield MlflowClient(tracking_uri=self.uri)

    def runs(self, suite=SUITE):
        """Return every run of a suite's experiment by its kind: parents, and runs of systems."""
        with self.client() as client:
            number = client.get_experiment_by_name(suite).experiment_id
            runs = client.search_runs([number], max_results=100)
        below = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
        return [run for run in runs if run not in below], below

    def content(self, run):
        """Return the points of each metric of a run, and its files."""
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


@contextlib.contextmanager
def team_server() -> Iterator[TeamServer]:
    """Serve a new folder; skip the test where PostgreSQL is not installed or its user can enter no folder."""
    try:
        binaries()
    except MissingSystemLibrary as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(prefix="mt-", dir=_open_folder()) as folder:
        Path(folder).chmod(0o755)
        server = TeamServer(Path(folder) / "team")
        server.start()
        try:
            yield server
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait()


def _open_folder() -> str:
    """Return a folder for short paths that the database's user can enter, which is not root: TMPDIR may be closed."""
    for name in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")):  # noqa: S108
        path = Path(name).resolve()
        entered = os.geteuid() != 0 or all(each.stat().st_mode & 0o001 for each in (path, *path.parents))
        if path.is_dir() and entered and len(os.fsencode(path)) <= 40:
            return str(path)
    pytest.skip("PostgreSQL does not run as root, and its user can enter no folder for temporary files")
