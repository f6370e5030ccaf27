"""How worker processes are started, waited for and ended.

On Linux a fork server (:mod:`medtest.runner.pool.fork_server`) has what workers import and forks them in milliseconds;
elsewhere, and where ``MEDTEST_FRESH_WORKERS`` is set, each is a fresh interpreter. What a worker does is the same.
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
"""Where it is set and not empty, no worker is forked."""
_SERVER = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from medtest.runner.pool.fork_server import main; main()"
)
_SERVERS = 3
"""How many servers are kept that have no worker."""
_AT_WILL = ("MEDTEST_", "MLFLOW_", "PYTEST_CURRENT_TEST")
"""How names of variables begin that nothing reads as it is loaded."""
_STATUS = ("Umask:", "Uid:", "Gid:", "Groups:", "SigIgn:", "CapEff:", "Seccomp:", "Cpus_allowed:", "Mems_allowed:")
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """What a worker process is started with.

    Attributes:
        entry: ``module:function`` that it runs: it takes the descriptors of tasks and messages and the parent's
            process id.
        modules: What the entry imports.
        environment: Its environment.
        tasks: Descriptor from which it reads tasks.
        messages: Descriptor into which it writes messages.
        log: Where its standard output and error go.
    """

    entry: str
    modules: tuple[str, ...]
    environment: dict[str, str]
    tasks: int
    messages: int
    log: IO[bytes]


class Process(Protocol):
    """A worker process."""

    @property
    def pid(self) -> int:
        """Process id, which means no other process until this one is closed."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit code, negative for a signal.

        Raises:
            subprocess.TimeoutExpired: It has not ended within so many seconds.
        """

    def kill(self) -> None:
        """Kill it and whatever it started."""

    def close(self) -> None:
        """Free what it held; it has ended."""

    def loaded(self, modules: Iterable[str]) -> None:
        """Remember modules that it came to load: the next one of its kind begins with them."""


def start(what: WorkerStart) -> Process:
    """Start a worker process, forked where that can be; it is not waited for."""
    if not _can_fork():
        return _Fresh(what)
    for _ in range(2):
        server = _server(what)
        with suppress(ConnectionError):  # it is gone, which nobody noticed before
            return server.start(what)
        server.close()
    return _Fresh(what)


class _Fresh:
    """A fresh interpreter."""

    def __init__(self, what: WorkerStart) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            child.fresh(what.entry, sys.path, what.tasks, what.messages, os.getpid()),
            stdin=subprocess.DEVNULL,
            stdout=what.log,
            stderr=what.log,
            env=what.environment,
            pass_fds=(what.tasks, what.messages),
            start_new_session=True,  # a Ctrl-C at the terminal is the parent's to handle
        )
        self.pid = self._process.pid

    def wait(self, timeout: float | None = None) -> int:
        return self._process.wait(timeout)

    def kill(self) -> None:
        _kill_group(self.pid)
        with suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> None:
        pass

    def loaded(self, modules: Iterable[str]) -> None:
        pass


class ServerProcess(Protocol):
    """The process of a fork server; :class:`subprocess.Popen` is one."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises subprocess.TimeoutExpired."""

    def kill(self) -> None:
        """Kill it."""


class ForkServer:
    """A server seen from the process that started it.

    Args:
        process: The server's process.
        control: Our end of its control socket.
    """

    def __init__(self, process: ServerProcess, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._modules: set[str] = set()
        self._new: list[str] = []
        self._lock = threading.Lock()
        self.workers = 0

    @classmethod
    def started(cls, what: WorkerStart) -> ForkServer:
        """Start one for a worker; in the worker's log it says why, if it cannot start."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
                    [sys.executable, "-c", _SERVER, json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=what.log,
                    stderr=what.log,
                    env=LIGHT | what.environment,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        return cls(process, ours)

    @property
    def closed(self) -> bool:
        """Whether nothing can be asked of it any more."""
        return self._control.fileno() < 0

    def start(self, what: WorkerStart) -> _Forked:
        """Ask for a worker.

        Raises:
            ConnectionError: The server is gone.
        """
        self.loaded(what.modules)
        with self._lock:
            plan = {"modules": self._new, "entry": what.entry, "path": sys.path, "environment": what.environment}
            ours, theirs = socket.socketpair()
            folder = os.open(".", os.O_PATH)
            try:
                with theirs:
                    sent = (folder, what.log.fileno(), what.tasks, what.messages, theirs.fileno())
                    socket.send_fds(self._control, [b"w"], sent)
                ours.sendall(json.dumps(plan).encode() + b"\n")
            except BaseException:
                ours.close()
                raise
            finally:
                os.close(folder)
            self._new = []
            self.workers += 1
        return _Forked(self, ours)

    def loaded(self, modules: Iterable[str]) -> None:
        """Remember what a worker came to load."""
        with self._lock:
            new = [name for name in modules if name not in self._modules]
            self._new += new
            self._modules.update(new)

    def let_go(self) -> None:
        """One worker less."""
        with self._lock:
            self.workers -= 1

    def ended(self) -> int:
        """Return how the server ended, which it is about to."""
        try:
            return self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def close(self) -> None:
        """End the server and what workers it has."""
        self.forget()
        self.ended()

    def forget(self) -> None:
        """Close this process's end of its socket."""
        self._control.close()


class _Forked:
    """A worker that a server forks, or will.

    Args:
        server: The server.
        status: Where it says how the worker fares.
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
            self._hear(None)
        return self._pid or 0

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while self._code is None:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not self._hear(left) and left is not None:
                raise subprocess.TimeoutExpired(child.NAME, timeout or 0.0)
        return self._code

    def kill(self) -> None:
        if self._closed:
            return
        if self._code is None:
            self._hear(0.0)
        if self._pid is not None:
            _kill_group(self._pid)
        elif self._code is None:  # the server has not come to it: it will not, or else end it at once
            self._code = -signal.SIGKILL
            self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._status.close()
            self._server.let_go()

    def loaded(self, modules: Iterable[str]) -> None:
        self._server.loaded(modules)

    def _hear(self, timeout: float | None) -> bool:
        """Take in what the server says within so many seconds; return whether it said anything."""
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            return False
        try:
            said = self._status.recv(256)
        except ConnectionError:  # it went before it had read what was asked
            said = b""
        if not said:  # the server is gone, and its workers with it
            self._code = -signal.SIGKILL if self._pid is not None else self._server.ended()
            return True
        *lines, self._said = (self._said + said).split(b"\n")
        for line in lines:
            what, number = line.split()
            if what == b"pid":
                self._pid = int(number)
            else:
                self._code = int(number)
        return True


_Key: TypeAlias = tuple[object, ...]
_servers: dict[_Key, ForkServer] = {}
"""This process's servers, by what their workers would inherit; the one that was used last stands last."""
_lock = threading.Lock()


def _server(what: WorkerStart) -> ForkServer:
    """Return the server whose workers inherit what a fresh interpreter would, started where there is none."""
    key = _inherited(what.environment)
    with _lock:
        server = _servers.pop(key, None)
        if server is None or server.closed:
            idle = [other for other, one in _servers.items() if not one.workers]
            for other in idle[: max(0, len(idle) + 1 - _SERVERS)]:
                _servers.pop(other).close()
            server = ForkServer.started(what)
        _servers[key] = server
        return server


def _inherited(environment: dict[str, str]) -> _Key:
    """Return what a process takes over from the one that starts it, or reads while it loads its libraries."""
    import resource

    variables = frozenset(one for one in environment.items() if not one[0].startswith(_AT_WILL))
    limits = tuple(resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_"))
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    status = tuple(line for line in lines if line.startswith(_STATUS))
    return sys.executable, tuple(sys.path), variables, limits, status, os.getpriority(os.PRIO_PROCESS, 0)


def _can_fork() -> bool:
    return not os.environ.get(FRESH_VARIABLE) and _has_descriptors_of_processes()


@cache
def _has_descriptors_of_processes() -> bool:
    """Whether this is Linux 5.3 or later."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def end_servers() -> None:
    """End this process's servers, and what workers they have; the next worker gets a new one."""
    with _lock:
        for server in _servers.values():
            server.close()
        _servers.clear()


def _forget_all() -> None:
    """In a fork of this process: its parent's servers are not its own."""
    global _lock
    _lock = threading.Lock()
    for server in _servers.values():
        server.forget()
    _servers.clear()


atexit.register(end_servers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
