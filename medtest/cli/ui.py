"""``medtest ui``: the MLflow UI on this folder's results, on loopback unless the user says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

from rich.console import Console

from medtest.cli.bootstrap import quiet_libraries


def serve_ui(*, host: str, port: int, console: Console) -> int:
    """Serve until Ctrl-C and return the server's exit code."""
    from medtest.tracking import ensure_store, experiments, store_uri

    quiet_libraries()
    uri = store_uri()
    ensure_store(uri)
    console.print(f"MLflow UI: http://{host}:{port}  (Ctrl-C stops it)", markup=False, soft_wrap=True)
    # MLflow's own front page takes every experiment for a chat application until one switches: these links do not
    for number, name in experiments(uri):
        link = f"http://{host}:{port}/#/experiments/{number}/runs?workflowType=machine_learning"
        console.print(f"  {name}: {link}", markup=False, soft_wrap=True)
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri]
    command += ["--host", host, "--port", str(port)]
    if host in ("127.0.0.1", "localhost"):
        command += ["--workers", "1"]
    process = subprocess.Popen(command, env=dict(os.environ))  # noqa: S603 - our own interpreter, fixed arguments
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait(timeout=20)
        return 0
