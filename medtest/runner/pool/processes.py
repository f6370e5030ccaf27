"""Start, wait for and end worker processes.

On Linux a fork server (:mod:`medtest.runner.pool.fork_server`) has the modules of workers loaded and forks them in
milliseconds; elsewhere, and if ``MEDTEST_FRESH_WORKERS`` is set, each is a fresh interpreter. Workers behave the same
in both cases.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from medtest.runner.pool import child
from medtest.runner.pool.fork_server import LIGHT

FRESH_VARIABLE = "MEDTEST_FRESH_WORKERS"
"""If this variable is set and not empty, no worker is forked."""
_SERVER = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from medtest.runner.pool.fork_server import main; main()"
)
_SERVERS = 3
"""Number of servers without workers that are kept."""
_AT_WILL = ("MEDTEST_", "MLFLOW_", "PYTEST_CURRENT_TEST", "COLUMNS")
"""Prefixes of variables that are not read while modules load."""
_KEYS = "_KEY"
"""Suffix of variables with credentials, which are read when a connection is opened."""
_STATUS = ("Umask:", "Uid:", "Gid:", "Groups:", "SigIgn:", "CapEff:", "Seccomp:", "Cpus_allowed:", "Mems_allowed:")
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """Start parameters of a worker process.

    Attributes:
        entry: ``module:function`` that it runs: it takes the descriptors of tasks and messages and the parent's process
            id.
        modules: Modules imported by the entry.
        environment: Its environment.
        tasks: Descriptor from which it reads tasks.
        messages: Descriptor to which it writes messages.
        log: Target of its standard output and error.
    """

    entry: str
    modules: tuple[str, ...]
    environment: dict[str, str]
    tasks: int
    messages: int
    log: IO[bytes]


class Process(Protocol):
    """Interface of a worker process."""

    @property
    def pid(self) -> int:
        """Process id, not reused by another process until this one is closed."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit code, negative for a signal.

        Raises:
            subprocess.TimeoutExpired: It has not ended in time.
        """

    def kill(self) -> None:
        """Kill the process and its children."""

    def close(self) -> None:
        """Release its resources after it has ended."""

    def loaded(self, modules: Iterable[str]) -> None:
        """Remember modules that it loaded: the next process of its kind starts with them."""


def start(parameters: WorkerStart) -> Process:
    """Start a worker process without waiting for it, forked if possible."""
    if not _can_fork():
        return _Fresh(parameters)
    for _ in range(2):
        server = _server(parameters)
        with suppress(ConnectionError):  # the server died unnoticed
            return server.start(parameters)
        server.close()
    return _Fresh(parameters)


class _Fresh:
    """Fresh interpreter."""

    def __init__(self, parameters: WorkerStart) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            child.fresh(parameters.entry, sys.path, parameters.tasks, parameters.messages, os.getpid()),
            stdin=subprocess.DEVNULL,
            stdout=parameters.log,
            stderr=parameters.log,
            env=parameters.environment,
            pass_fds=(parameters.tasks, parameters.messages),
            start_new_session=True,  # the parent handles a Ctrl-C at the terminal
        )
        self.pid = self._process.pid

    def wait(self, timeout: float | None = None) -> int:
        return self._process.wait(timeout)

    def kill(self) -> None:
        child.kill_group(self.pid)
        with suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> None:
        pass

    def loaded(self, modules: Iterable[str]) -> None:
        pass


class ForkServer:
    """Fork server as seen from the process that started it.

    Args:
        process: The server's process.
        control: This process's end of its control socket.
    """

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._modules: set[str] = set()
        self._new: list[str] = []
        self._lock = threading.Lock()
        self.workers = 0

    @classmethod
    def started(cls, parameters: WorkerStart) -> ForkServer:
        """Start a server for a worker; if it cannot start, the worker's log has the reason."""
        near_end, far_end = socket.socketpair()
        try:
            with far_end:
                process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
                    [sys.executable, "-c", _SERVER, json.dumps(sys.path), str(far_end.fileno()), str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=parameters.log,
                    stderr=parameters.log,
                    env=LIGHT | parameters.environment,
                    pass_fds=(far_end.fileno(),),
                    start_new_session=True,
                )
        except BaseException:
            near_end.close()
            raise
        return cls(process, near_end)

    @property
    def closed(self) -> bool:
        """True if the server accepts no further requests."""
        return self._control.fileno() < 0

    def start(self, parameters: WorkerStart) -> _Forked:
        """Request a worker.

        Raises:
            ConnectionError: The server is gone.
        """
        self.loaded(parameters.modules)
        with self._lock:
            plan = {
                "modules": self._new,
                "entry": parameters.entry,
                "path": sys.path,
                "environment": parameters.environment,
            }
            near_end, far_end = socket.socketpair()
            folder = os.open(".", os.O_PATH)
            try:
                with far_end:
                    sent = (folder, parameters.log.fileno(), parameters.tasks, parameters.messages, far_end.fileno())
                    socket.send_fds(self._control, [b"w"], sent)
                near_end.sendall(json.dumps(plan).encode() + b"\n")
            except BaseException:
                near_end.close()
                raise
            finally:
                os.close(folder)
            self._new = []
            self.workers += 1
        return _Forked(self, near_end)

    def loaded(self, modules: Iterable[str]) -> None:
        """Remember the modules that a worker loaded."""
        with self._lock:
            new = [name for name in modules if name not in self._modules]
            self._new += new
            self._modules.update(new)

    def let_go(self) -> None:
        """Count one worker less."""
        with self._lock:
            self.workers -= 1

    def ended(self) -> int:
        """Return the exit code of the server, which is about to end."""
        try:
            return self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def close(self) -> None:
        """End the server and its workers."""
        self.forget()
        self.ended()

    def forget(self) -> None:
        """Close this process's end of its socket."""
        self._control.close()


class _Forked:
    """Worker that a server forks.

    Args:
        server: The server.
        status: Socket for the server's reports about it.
    """

    def __init__(self, server: ForkServer, status: socket.socket) -> None:
        self._server = server
        self._status = status
        self._said = b""
        self._pid: int | None = None
        self._code: int | None = None
        self._closed = False

    @property
    def pid(self) -> int:
        while self._pid is None and self._code is None:
            self._read_reports(None)
        return self._pid or 0

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while self._code is None:
            remaining = None if until is None else max(0.0, until - time.monotonic())
            if not self._read_reports(remaining) and remaining is not None:
                raise subprocess.TimeoutExpired(child.NAME, timeout or 0.0)
        return self._code

    def kill(self) -> None:
        if self._closed:
            return
        if self._code is None:
            self._read_reports(0.0)
        if self._pid is not None:
            child.kill_group(self._pid)
        elif (
            self._code is None
        ):  # the server has not handled the request yet: it never will, or it ends the worker at once
            self._code = -signal.SIGKILL
            self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._status.close()
            self._server.let_go()

    def loaded(self, modules: Iterable[str]) -> None:
        self._server.loaded(modules)

    def _read_reports(self, timeout: float | None) -> bool:
        """Read the server's reports for at most ``timeout`` seconds; return True if there were any."""
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            return False
        try:
            data = self._status.recv(256)
        except ConnectionError:  # it ended before reading the request
            data = b""
        if not data:  # the server is gone, and its workers with it
            self._code = -signal.SIGKILL if self._pid is not None else self._server.ended()
            return True
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            event, number = line.split()
            if event == b"pid":
                self._pid = int(number)
            else:
                self._code = int(number)
        return True


_Key: TypeAlias = tuple[object, ...]
_servers: dict[_Key, ForkServer] = {}
"""This process's servers, by the state that their workers would inherit; the last used is last."""
_lock = threading.Lock()


def _server(parameters: WorkerStart) -> ForkServer:
    """Return a server whose workers inherit the same state as a fresh interpreter; start one if needed."""
    key = _inherited(parameters.environment)
    with _lock:
        server = _servers.pop(key, None)
        if server is None or server.closed:
            idle = [server_key for server_key, candidate in _servers.items() if not candidate.workers]
            for server_key in idle[: max(0, len(idle) + 1 - _SERVERS)]:
                _servers.pop(server_key).close()
            server = ForkServer.started(parameters)
        _servers[key] = server
        return server


def _inherited(environment: dict[str, str]) -> _Key:
    """Return the state that a process inherits from its parent or reads while loading libraries."""
    import resource

    variables = frozenset(
        (name, value) for name, value in environment.items() if not (name.startswith(_AT_WILL) or name.endswith(_KEYS))
    )
    limits = tuple(resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_"))
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    status = tuple(line for line in lines if line.startswith(_STATUS))
    return sys.executable, tuple(sys.path), variables, limits, status, os.getpriority(os.PRIO_PROCESS, 0)


def _can_fork() -> bool:
    return not os.environ.get(FRESH_VARIABLE) and _has_descriptors_of_processes()


@cache
def _has_descriptors_of_processes() -> bool:
    """Return True on Linux 5.3 or later."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def end_servers() -> None:
    """End this process's servers and their workers; the next worker gets a new one."""
    with _lock:
        for server in _servers.values():
            server.close()
        _servers.clear()


def _reset_after_fork() -> None:
    """Close inherited server connections in a fork of this process."""
    global _lock
    _lock = threading.Lock()
    for server in _servers.values():
        server.forget()
    _servers.clear()


atexit.register(end_servers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
