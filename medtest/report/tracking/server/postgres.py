"""A private PostgreSQL cluster in a folder, reached through a socket in that folder and no port."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from medtest.core.errors import MedtestError, MissingSystemLibrary, typed_error

USER = "medtest"
_START_SECONDS = 120.0
_SOCKET_LENGTH = 80
"""A socket's path may have 107 bytes, to which PostgreSQL adds a name."""
_PR_SET_PDEATHSIG = 1


def binaries(version: str = "") -> Path:
    """Return the folder of PostgreSQL's programs: that of ``initdb`` on PATH, else the newest installed by Debian.

    Args:
        version: Required major version, as in ``PG_VERSION`` of a cluster; "" for any.

    Raises:
        MissingSystemLibrary: It is not installed, or not in this version.
    """
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if on_path := shutil.which("initdb"):
        paths.append(Path(on_path).resolve())
    fitting = [path for path in paths if not version or _major(path) == version]
    if fitting:
        return fitting[-1].parent
    if paths:
        raise MissingSystemLibrary(
            f"The data are from PostgreSQL {version}, but version {_major(paths[-1])} is installed. Install version "
            f"{version} as well, or convert the data with pg_upgrade."
        )
    raise MissingSystemLibrary(
        "PostgreSQL (initdb, postgres) is not installed. Run apt-get install postgresql, or put the folder of its "
        "programs on PATH."
    )


def _major(initdb: Path) -> str:
    """Return the major version of an installation, such as "15"."""
    output = subprocess.run([initdb, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    return next((word.partition(".")[0] for word in output.split() if word[0].isdigit()), "")


class Postgres:
    """A PostgreSQL cluster and its process.

    Args:
        folder: Folder for ``data/``, the socket and the password file.

    Raises:
        UserMistakes: The folder's path is too long for a socket, or the unprivileged user cannot enter it.
        MissingSystemLibrary: PostgreSQL is not installed, or not in the version of the data.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._bin = binaries(self._version())
        self._process: subprocess.Popen[bytes] | None = None
        self._user = _unprivileged()
        if len(os.fsencode(self.folder)) > _SOCKET_LENGTH:
            raise self._refused(f"a path of at most {_SOCKET_LENGTH} bytes, because it holds the socket")
        if self._user is not None and (closed := _closed_to_others(self.folder.parent)):
            raise self._refused(f"a folder that user {self._user.pw_name} can enter; {closed} is closed to other users")

    def _version(self) -> str:
        """Return the major version of the data; "" if there are none yet."""
        try:
            return (self.folder / "data" / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    @property
    def passwords(self) -> Path:
        """Password file of libpq (``PGPASSFILE``), mode 0600."""
        return self.folder.parent / "pgpass"

    @property
    def log(self) -> Path:
        """Log file of PostgreSQL."""
        return self.folder.parent / "postgres.log"

    def is_alive(self) -> bool:
        """Return True if the process is running."""
        return self._process is not None and self._process.poll() is None

    def uri(self, database: str) -> str:
        """Return a database's address for SQLAlchemy, without a password."""
        return f"postgresql+psycopg2://{USER}@/{database}?host={quote(str(self.folder), safe='')}"

    @contextlib.contextmanager
    def running(self, databases: tuple[str, ...]) -> Iterator[None]:
        """Create the cluster if needed, start it, create missing databases, and stop it at the end.

        Raises:
            MedtestError: It cannot be created or does not start.
        """
        data = self.folder / "data"
        if not self._version():
            self._make_cluster(data)
        elif not self.passwords.is_file():
            raise MedtestError(
                f"{self.passwords}, which holds the database's password, is missing. Restore it from the backup."
            )
        self._start(data)
        try:
            for name in databases:
                self._ensure(name)
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop the server; open sessions are aborted, and their commits are kept."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait()

    def _make_cluster(self, data: Path) -> None:
        draft = self.folder / "data.draft"
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(draft, ignore_errors=True)  # from a process that died
        password = secrets.token_urlsafe(32)
        password_file = self.folder / "password.draft"
        write_secret(password_file, password)
        write_secret(self.passwords, f"*:*:*:{USER}:{password}\n")
        if self._user is not None:
            for path in (self.folder, password_file):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        self.folder.chmod(0o700)
        try:
            options = ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--data-checksums"]
            self._do("initdb", "-D", str(draft), "-U", USER, f"--pwfile={password_file}", *options, as_server=True)
        finally:
            password_file.unlink(missing_ok=True)
        draft.rename(data)

    def _start(self, data: Path) -> None:
        _wait_for_previous(data)
        command = [str(self._bin / "postgres"), "-D", str(data), "-k", str(self.folder), "-c", "listen_addresses="]
        command += ["-c", "log_min_messages=fatal", "-c", "unix_socket_permissions=0700"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - PostgreSQL's own program
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=stop_with_parent, **self._as()
            )
        end = time.monotonic() + _START_SECONDS
        while subprocess.run(  # noqa: S603
            [self._bin / "pg_isready", "-q", "-h", str(self.folder), "-U", USER], check=False
        ).returncode:
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise MedtestError(f"PostgreSQL does not start; see {self.folder.parent.name}/postgres.log.")
            time.sleep(0.1)

    def _ensure(self, database: str) -> None:
        ask = f"SELECT 1 FROM pg_database WHERE datname = '{database}'"  # noqa: S608 - constant names
        if not self._do("psql", "-w", "-h", str(self.folder), "-U", USER, "-d", "postgres", "-Atc", ask).strip():
            self._do("createdb", "-w", "-h", str(self.folder), "-U", USER, database)

    def _do(self, program: str, *arguments: str, as_server: bool = False) -> str:
        environment = {**os.environ, "PGPASSFILE": str(self.passwords)}
        result = subprocess.run(  # noqa: S603 - PostgreSQL's own program
            [str(self._bin / program), *arguments],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **(self._as() if as_server else {}),
        )
        if result.returncode:
            raise MedtestError(f"PostgreSQL's {program} failed: {' '.join(result.stderr.split())[:300]}")
        return str(result.stdout)

    def _as(self) -> dict[str, Any]:
        user = self._user
        return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def _refused(self, allowed: str) -> MedtestError:
        return typed_error("--folder", str(self.folder.parent), allowed, "medtest server --folder /srv/medtest")


def _wait_for_previous(data: Path) -> None:
    """Wait for a stopping PostgreSQL on the same data, left by a killed server."""
    end = time.monotonic() + _START_SECONDS
    with contextlib.suppress(OSError, ValueError, IndexError):  # none is running, or its process is gone
        number = int((data / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0])
        while time.monotonic() < end and (data / "postmaster.pid").is_file():
            os.kill(number, 0)
            time.sleep(0.1)


def write_secret(path: Path, content: str) -> None:
    """Write a file that only its owner can read, at no time open to others."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)


def _unprivileged() -> pwd.struct_passwd | None:
    """Return the unprivileged user for PostgreSQL, which refuses to run as root; None if the caller is not root.

    Raises:
        MissingSystemLibrary: The caller is root, and there is neither ``postgres`` nor ``nobody``.
    """
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise MissingSystemLibrary("PostgreSQL does not run as root, and the users postgres and nobody do not exist.")


def _closed_to_others(folder: Path) -> Path | None:
    """Return the first folder on a path that other users cannot enter; None if they can."""
    for path in (*reversed(folder.parents), folder):
        if path.is_dir() and not path.stat().st_mode & 0o001:
            return path
    return None


def stop_with_parent() -> None:
    """Let a child process end in order (SIGINT) when its parent is gone; for ``preexec_fn``."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
