"""``medtest server``: MLflow for a team, on loopback behind a proxy with TLS (docs/teams.md)."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from filelock import FileLock, Timeout
from rich.console import Console

from medtest.cli.bootstrap import quiet_libraries
from medtest.cli.team.ui import VIEWER, check_free, wait_for
from medtest.cli.terminal import say
from medtest.core.errors import MedtestError, UserMistakes, typed_error
from medtest.report.tracking.server.postgres import Postgres, stop_with_parent, write_secret

ADMIN = "admin"
PASSWORD = "admin-password"  # noqa: S105 - a file's name
HOST = "127.0.0.1"
_SERVED = "session-key"
"""Exists once a server has run and users have passwords."""
_NEEDED = ("flask_wtf", "psycopg2")
_COMMAND = "medtest server"
_ENDING_SECONDS = 20.0
_LOOK_SECONDS = 1.0
REMEMBERED_SECONDS = 300
"""Seconds for which MLflow accepts a verified password again without a new check, which takes a third of a second.

It keeps a keyed hash in memory, and drops that of a user at once when it changes or deletes the user.
"""


def serve_team(folder: Path, *, port: int, console: Console) -> int:
    """Serve until Ctrl-C or SIGTERM and return MLflow's exit code.

    ``folder`` will hold ``postgres/`` (the database), ``artifacts/``, ``admin-password``, ``session-key``, ``pgpass``
    (each mode 0600) and ``postgres.log``. No password is shown in a command line, a log or on the terminal.

    Args:
        folder: Folder of the server, created if needed.
        port: MLflow's port on loopback.
        console: Console for the server's address.

    Raises:
        UserMistakes: The port is taken, the extra ``server`` is not installed, or PostgreSQL cannot use the folder.
        MissingSystemLibrary: PostgreSQL is not installed.
        MedtestError: PostgreSQL or MLflow does not start.
    """
    quiet_libraries()
    lacking = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        problem = f"an installation without {' and '.join(lacking)}"
        raise typed_error("server", problem, "one with the extra server", 'pip install "medtest[server]"')
    folder = folder.resolve()
    if not (folder / _SERVED).is_file():
        check_free(HOST, port, _COMMAND)
    if not folder.is_dir():
        folder.mkdir(parents=True)
        folder.chmod(0o711)  # PostgreSQL's user must pass through it if root calls; secret files in it are 0600
    database = Postgres(folder / "postgres")
    with _exclusive(folder), _stopped_by_sigterm(), database.running(("mlflow", "users")):
        wait_for_port(port)
        (folder / "artifacts").mkdir(exist_ok=True, mode=0o700)
        environment = _environment(folder, database)
        say(console, "Starting the MLflow server …")
        process = _mlflow(folder, port, environment, database.uri("mlflow"))
        try:
            if wait_for(process, HOST, port):
                say(console, f"MLflow for a team: http://{HOST}:{port}  (Ctrl-C stops it)")
                hint = f"user {ADMIN}, password in {folder.name}/{PASSWORD}; create an account for each person."
                say(console, hint)
            return _wait(process, database)
        except KeyboardInterrupt:
            return 0
        finally:
            _end(process)


def _wait(process: subprocess.Popen[bytes], database: Postgres) -> int:
    """Return MLflow's exit code when it ends.

    Raises:
        MedtestError: PostgreSQL ended before it.
    """
    while database.is_alive():
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=_LOOK_SECONDS)
    raise MedtestError(
        f"PostgreSQL ended while MLflow was running; see {database.log.name}. Confirmed results are kept: start "
        "medtest server again, then send missing results with medtest track."
    )


def wait_for_port(port: int) -> None:
    """Wait until a loopback port is free, since MLflow takes a moment to end after its server was killed.

    Raises:
        UserMistakes: The port is still in use after twenty seconds.
    """
    end = time.monotonic() + _ENDING_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(UserMistakes):
            check_free(HOST, port, _COMMAND)
            return
        time.sleep(0.2)
    check_free(HOST, port, _COMMAND)


def _mlflow(folder: Path, port: int, environment: dict[str, str], store: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--host", HOST]
    command += ["--port", str(port), "--workers", "1", "--serve-artifacts"]
    command += ["--backend-store-uri", store, "--artifacts-destination", f"{folder}/artifacts"]
    command += ["--uvicorn-opts", "--log-level warning"]
    return subprocess.Popen(command, env=environment, cwd=folder, preexec_fn=stop_with_parent)  # noqa: S603 - own command


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def _environment(folder: Path, database: Postgres) -> dict[str, str]:
    config = folder / "auth.ini"
    write_secret(
        config,
        "[mlflow]\ndefault_permission = EDIT\n"  # a suite's experiment belongs to the team, whoever ran it first
        f"database_uri = {database.uri('users').replace('%', '%%')}\nadmin_username = {ADMIN}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
        f"auth_cache_ttl_seconds = {REMEMBERED_SECONDS}\n",
    )
    return {
        **os.environ,
        **VIEWER,
        "MLFLOW_AUTH_CONFIG_PATH": str(config),
        "MLFLOW_AUTH_ADMIN_PASSWORD": _secret(folder / PASSWORD),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": _secret(folder / "session-key"),
        "PGPASSFILE": str(database.passwords),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
    }


@contextlib.contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Restrict a folder to one server at a time.

    Raises:
        UserMistakes: Another server uses it.
    """
    lock = FileLock(folder / "server.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        problem, allowed = f"{folder}, which another medtest server uses", "a folder that no other server uses"
        raise typed_error("--folder", problem, allowed, "stop that server, or use it") from error
    try:
        yield
    finally:
        lock.release()


def _secret(path: Path) -> str:
    """Return the content of a file of mode 0600, created with a random secret if it is missing.

    Raises:
        MedtestError: The admin's password file is missing; MLflow keeps the first password it was given.
    """
    if not path.is_file():
        if path.name == PASSWORD and (path.parent / _SERVED).is_file():
            raise MedtestError(f"{path} is missing, and MLflow still expects its password: restore it from a backup.")
        write_secret(path, secrets.token_urlsafe(24))
    return path.read_text(encoding="utf-8").strip()


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Let SIGTERM, as sent by systemd and ``kill``, end the server like Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
