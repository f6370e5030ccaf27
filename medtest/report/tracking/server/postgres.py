"""A PostgreSQL of one's own: a cluster in a folder, reached through a socket in that folder and by no port."""

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

from medtest.core.errors import MedtestError, MissingSystemLibrary, Mistake

USER = "medtest"
_START_SECONDS = 120.0
_SOCKET_LENGTH = 80
"""A socket's path may have 107 bytes; PostgreSQL adds a name of its own."""
_PR_SET_PDEATHSIG = 1


def binaries(version: str = "") -> Path:
    """Return the folder of PostgreSQL's programs: that of ``initdb`` on PATH, else the newest that Debian installs.

    Args:
        version: The major version that they must be of, as ``PG_VERSION`` of a cluster says it; "" for any.

    Raises:
        MissingSystemLibrary: There is none, or none of this version.
    """
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found := shutil.which("initdb"):
        known.append(Path(found).resolve())
    fitting = [path for path in known if not version or _major(path) == version]
    if fitting:
        return fitting[-1].parent
    if known:
        raise MissingSystemLibrary(
            f"The data are PostgreSQL {version}'s, and what is installed is {_major(known[-1])}: install that version "
            "beside it, or carry the data over with its pg_upgrade."
        )
    raise MissingSystemLibrary(
        "PostgreSQL's programs (initdb, postgres) are not installed: apt-get install postgresql, or put their "
        "folder on PATH."
    )


def _major(initdb: Path) -> str:
    """Return the major version of an installation, "15"."""
    said = subprocess.run([initdb, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    return next((word.partition(".")[0] for word in said.split() if word[0].isdigit()), "")


class Postgres:
    """One cluster and its process.

    Args:
        folder: Holds ``data/``, the socket and the password's file.

    Raises:
        UserMistakes: The folder's path is too long for a socket, or the unprivileged user cannot enter it.
        MissingSystemLibrary: PostgreSQL is not installed, or not in the version that the data are of.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._bin = binaries(self._version())
        self._process: subprocess.Popen[bytes] | None = None
        self._user = _unprivileged()
        if len(os.fsencode(self.folder)) > _SOCKET_LENGTH:
            raise self._refused(f"a path of at most {_SOCKET_LENGTH} bytes: its socket lies in it")
        if self._user is not None and (closed := _closed_to_others(self.folder.parent)):
            raise self._refused(f"a folder that user {self._user.pw_name} can enter, and {closed} lets nobody in")

    def _version(self) -> str:
        """The major version that the data are of; "" where there are none yet."""
        try:
            return (self.folder / "data" / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    @property
    def passwords(self) -> Path:
        """The file that libpq reads the password from (``PGPASSFILE``), mode 0600."""
        return self.folder.parent / "pgpass"

    @property
    def log(self) -> Path:
        """The file that PostgreSQL writes to."""
        return self.folder.parent / "postgres.log"

    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def uri(self, database: str) -> str:
        """Return a database's address for SQLAlchemy; it holds no password."""
        return f"postgresql+psycopg2://{USER}@/{database}?host={quote(str(self.folder), safe='')}"

    @contextlib.contextmanager
    def running(self, databases: tuple[str, ...]) -> Iterator[None]:
        """Make the cluster if there is none, start it, make databases that it lacks, and stop it at the end.

        Raises:
            MedtestError: It cannot be made or does not start.
        """
        data = self.folder / "data"
        if not self._version():
            self._make(data)
        elif not self.passwords.is_file():
            raise MedtestError(
                f"{self.passwords} is not there, which holds the database's password: put it back from the backup."
            )
        self._start(data)
        try:
            for name in databases:
                self._ensure(name)
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """End it: open sessions are broken off, what they had committed stays."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait()

    def _make(self, data: Path) -> None:
        draft = self.folder / "data.draft"
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(draft, ignore_errors=True)  # of a process that died meanwhile
        password = secrets.token_urlsafe(32)
        given = self.folder / "password.draft"
        write_secret(given, password)
        write_secret(self.passwords, f"*:*:*:{USER}:{password}\n")
        if self._user is not None:
            for path in (self.folder, given):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        self.folder.chmod(0o700)
        try:
            options = ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--data-checksums"]
            self._do("initdb", "-D", str(draft), "-U", USER, f"--pwfile={given}", *options, as_server=True)
        finally:
            given.unlink(missing_ok=True)
        draft.rename(data)

    def _start(self, data: Path) -> None:
        _wait_for_the_last(data)
        command = [str(self._bin / "postgres"), "-D", str(data), "-k", str(self.folder), "-c", "listen_addresses="]
        command += ["-c", "log_min_messages=fatal", "-c", "unix_socket_permissions=0700"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - PostgreSQL's own
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=stop_with_parent, **self._as()
            )
        end = time.monotonic() + _START_SECONDS
        while subprocess.run(  # noqa: S603
            [self._bin / "pg_isready", "-q", "-h", str(self.folder), "-U", USER], check=False
        ).returncode:
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise MedtestError(f"PostgreSQL does not start; {self.folder.parent.name}/postgres.log says why.")
            time.sleep(0.1)

    def _ensure(self, database: str) -> None:
        ask = f"SELECT 1 FROM pg_database WHERE datname = '{database}'"  # noqa: S608 - names of ours
        if not self._do("psql", "-w", "-h", str(self.folder), "-U", USER, "-d", "postgres", "-Atc", ask).strip():
            self._do("createdb", "-w", "-h", str(self.folder), "-U", USER, database)

    def _do(self, program: str, *arguments: str, as_server: bool = False) -> str:
        environment = {**os.environ, "PGPASSFILE": str(self.passwords)}
        result = subprocess.run(  # noqa: S603 - PostgreSQL's own
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
        return Mistake(
            where="command line",
            key="--folder",
            found=str(self.folder.parent),
            allowed=allowed,
            fix="medtest server --folder /srv/medtest",
        ).as_error()


def _wait_for_the_last(data: Path) -> None:
    """Wait until a PostgreSQL on these data that was told to end, its server having been killed, is gone."""
    end = time.monotonic() + _START_SECONDS
    with contextlib.suppress(OSError, ValueError, IndexError):  # there is none, or its number is gone
        number = int((data / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0])
        while time.monotonic() < end and (data / "postmaster.pid").is_file():
            os.kill(number, 0)
            time.sleep(0.1)


def write_secret(path: Path, content: str) -> None:
    """Write a file that only its owner may read; it is never open to others, not even while it is made."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)


def _unprivileged() -> pwd.struct_passwd | None:
    """Return whom PostgreSQL runs as: it refuses root; None for the user who called.

    Raises:
        MissingSystemLibrary: root called, and there is neither ``postgres`` nor ``nobody``.
    """
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise MissingSystemLibrary("PostgreSQL does not run as root, and there is no user postgres or nobody.")


def _closed_to_others(folder: Path) -> Path | None:
    """Return the first folder on the way to one that others cannot enter; None where they can."""
    for path in (*reversed(folder.parents), folder):
        if path.is_dir() and not path.stat().st_mode & 0o001:
            return path
    return None


def stop_with_parent() -> None:
    """Let a child end in order (SIGINT) when whoever started it is gone, however it went; for ``preexec_fn``."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
