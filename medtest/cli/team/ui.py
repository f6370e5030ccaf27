"""``medtest ui``: the MLflow UI on this folder's results, on loopback by default."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time

from rich.console import Console

from medtest.cli.bootstrap import quiet_libraries
from medtest.cli.terminal import say
from medtest.core.errors import MedtestError, typed_error
from medtest.core.files.paths import home

VIEWER = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
"""MLflow's server would start a dozen processes for jobs, which the viewer does not need."""
_START_SECONDS = 600.0
_ASK_SECONDS = 0.5


def serve_ui(*, host: str, port: int, console: Console) -> int:
    """Serve until Ctrl-C and return the server's exit code; links are printed once it responds.

    If runs are sent to a remote server, its links are printed and nothing is started.

    Raises:
        UserMistakes: The port is taken.
        NotTracked: The store cannot be created or reached.
        MedtestError: The server does not respond within ten minutes.
    """
    from medtest.report.tracking import ensure_store, experiments, is_remote, store_uri, where

    quiet_libraries()
    uri = store_uri()
    if is_remote(uri):
        _print_links(console, where(home(), uri), experiments(uri))
        return 0
    check_free(host, port)
    ensure_store(uri)
    pages = experiments(uri)
    say(console, "Starting the MLflow server …")
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri]
    command += ["--artifacts-destination", str(home() / "mlruns"), "--host", host, "--port", str(port)]
    command += ["--uvicorn-opts", "--log-level warning"]  # otherwise its log precedes the links
    if host in ("127.0.0.1", "localhost"):
        command += ["--workers", "1"]
    process = subprocess.Popen(command, env={**os.environ, **VIEWER})  # noqa: S603 - the same interpreter
    try:
        if wait_for(process, host, port):
            _print_links(console, f"http://{_reached_at(host)}:{port}", pages, "  (Ctrl-C stops it)")
        return process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)


def _print_links(console: Console, base: str, pages: list[tuple[str, str]], how_to_stop: str = "") -> None:
    """Print the page of all systems, then that of each suite."""
    from medtest.report.tracking.runs_page import link

    if not pages:
        say(console, f"MLflow UI: {base}{how_to_stop}; no run yet.")
        return
    every = link(base, [number for number, _ in pages])
    say(console, f"MLflow, runs of all systems: {every}{how_to_stop}")
    for number, name in pages if len(pages) > 1 else []:
        say(console, f"  {name}: {link(base, [number])}")


def _reached_at(host: str) -> str:
    """Return the address at which this machine reaches a server that listens on ``host``."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not listened on
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def check_free(host: str, port: int, command: str = "medtest ui") -> None:
    """Refuse a port that is in use.

    Raises:
        UserMistakes: A server listens on it.
    """
    try:
        with socket.create_connection((_reached_at(host).strip("[]"), port), timeout=2):
            pass
    except OSError:
        return  # the port is free
    fix = f"stop that server, or type {command} --port {port + 1 if port < 65535 else port - 1}"
    raise typed_error("--port", f"{port}, which is in use", "a free port", fix)


def wait_for(process: subprocess.Popen[bytes], host: str, port: int) -> bool:
    """Wait until the server responds; return False if it ended before."""
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(_reached_at(host).strip("[]"), port, timeout=5)
            with contextlib.closing(connection):
                connection.request("GET", "/health")
                if connection.getresponse().status == http.client.OK:
                    return True
        if time.monotonic() > end:
            raise MedtestError(f"The MLflow server does not respond on port {port} after {_START_SECONDS:.0f} s.")
        time.sleep(_ASK_SECONDS)
    return False
