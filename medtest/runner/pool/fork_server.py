"""Server process that imports the modules of workers once and forks a worker on each request.

Imports take a worker seconds (torch alone four), and a run replaces workers, a sweep or a notebook starts many. The
server is a fresh interpreter (started by :mod:`medtest.runner.pool.processes`) that holds only modules: it never runs
user code, opens no device and starts no thread, so that it may be forked, unlike the process of a run. If an imported
module did start a thread or open a device, a forked child becomes a fresh interpreter instead.

Its control socket receives one byte and five descriptors per worker: the working directory, the log, the pipes of tasks
and messages, and a status socket, which carries a line of JSON. The server writes ``pid N`` to it and, once the worker
has ended, ``end CODE``, negative for a signal. An ended worker stays a zombie until the other end of its status socket
is closed, so that its process id is not reused while it may be sent a signal; a worker that has not ended by then is
killed. The server ends with the process that started it, and its workers with the server.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from medtest.runner.pool.child import call_process, enter, fresh, kill_group

LIGHT = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Variables of the server only: Arrow's allocator would start a thread when loaded."""
NAME = "medtest-forks"
"""The process's name in ``ps`` and ``top``."""
_HARMLESS = {"jemalloc_bg_thd"}
"""Names of threads that survive a fork safely."""
_DEVICES = ("/dev/nvidia", "/dev/dri", "/dev/kfd")
_DESCRIPTORS = 5


@dataclass(slots=True)
class ForkRequest:
    """Start parameters of a worker; the descriptors belong to this process.

    Attributes:
        entry: ``module:function`` that the worker runs.
        modules: Modules to import before the fork.
        path: The worker's ``sys.path``.
        environment: The worker's environment.
        folder: Its working directory.
        log: Target of its standard output and error.
        tasks: Pipe from which it reads tasks.
        messages: Pipe to which it writes messages.
        status: Socket for reports about it.
    """

    entry: str
    modules: list[str]
    path: list[str]
    environment: dict[str, str]
    folder: int
    log: int
    tasks: int
    messages: int
    status: int

    @classmethod
    def received(cls, descriptors: list[int]) -> ForkRequest | None:
        """Read a request's plan from its status socket; None if the writer was interrupted."""
        folder, log, tasks, messages, status = descriptors
        with os.fdopen(status, "rb", closefd=False) as file:
            plan = file.readline()
        if plan.endswith(b"\n"):
            return cls(**json.loads(plan), folder=folder, log=log, tasks=tasks, messages=messages, status=status)
        for descriptor in descriptors:
            os.close(descriptor)
        return None

    def close(self) -> None:
        """Close all descriptors but the status socket."""
        for descriptor in (self.folder, self.log, self.tasks, self.messages):
            os.close(descriptor)


def main() -> None:
    """Serve until the parent is gone; the arguments are the control socket's descriptor and the parent's process id."""
    control, parent = (int(text) for text in sys.argv[2:4])
    call_process(NAME)
    Server(control, parent).serve()


class Server:
    """Server that forks workers.

    Args:
        control: Descriptor of the control socket.
        parent: Process id of the starter.
    """

    def __init__(self, control: int, parent: int) -> None:
        self._control = socket.socket(fileno=control)
        self._parent = os.pidfd_open(parent)
        self._alive: dict[int, tuple[int, int]] = {}
        """Process id and status socket by a descriptor of the process."""
        self._asked_for: dict[int, int] = {}
        """Process id by status socket."""
        self._obstacle = ""
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(self._parent, select.POLLIN)

    def serve(self) -> None:
        """Fork workers until the parent is gone; in a worker, run its entry and return."""
        server = os.getpid()
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._parent:
                    os._exit(0)
                if descriptor == self._control.fileno():
                    request = self._received()
                    if request is not None and self._forked(request):
                        self._leave()
                        _run_worker(request, server, self._obstacle)
                        return
                elif descriptor in self._alive:
                    self._report_end(descriptor)
                elif descriptor in self._asked_for:
                    self._release(descriptor)

    def _received(self) -> ForkRequest | None:
        data, descriptors, _, _ = socket.recv_fds(self._control, 1, _DESCRIPTORS)
        if not data:
            os._exit(0)
        return ForkRequest.received(descriptors)

    def _forked(self, request: ForkRequest) -> bool:
        """Fork a worker and report its process id, unless the requester is gone; return True in the worker."""
        if _import_new(request.modules):
            self._obstacle = obstacle()
        closed = select.poll()
        closed.register(request.status, select.POLLIN)
        pid = -1
        if not closed.poll(0):
            try:
                pid = os.fork()
            except OSError as error:
                os.write(request.log, f"no process can be started: {error.strerror}".encode())
                _report(request.status, "end 1")
        if pid == 0:
            return True
        request.close()
        if pid < 0:
            os.close(request.status)
            return False
        process = os.pidfd_open(pid)
        self._alive[process] = pid, request.status
        self._asked_for[request.status] = pid
        self._poll.register(process, select.POLLIN)
        self._poll.register(request.status, select.POLLIN)
        _report(request.status, f"pid {pid}")
        return False

    def _leave(self) -> None:
        """Close the server's descriptors in a worker."""
        self._control.close()
        for descriptor in (self._parent, *self._alive, *self._asked_for):
            os.close(descriptor)

    def _report_end(self, process: int) -> None:
        """Report the end of a worker and leave it a zombie; report nothing if the requester is gone."""
        pid, status = self._alive.pop(process)
        self._poll.unregister(process)
        os.close(process)
        if status not in self._asked_for:
            os.waitpid(pid, 0)
            return
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        if ended is not None:
            _report(status, f"end {ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status}")

    def _release(self, status: int) -> None:
        """Kill a worker without a requester, and its children."""
        pid = self._asked_for.pop(status)
        self._poll.unregister(status)
        os.close(status)
        kill_group(pid)
        if all(pid != process for process, _ in self._alive.values()):
            os.waitpid(pid, 0)


def obstacle() -> str:
    """Return the reason why this process must not be forked, or ""."""
    if _threads():
        # Multithreaded OpenBLAS starts its threads when loaded, ends them at a fork, and restarts them for a
        # calculation, which never happens here.
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
    devices = {os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()}
    return ", ".join([*_threads(), *sorted(path for path in devices if path.startswith(_DEVICES))])


def _threads() -> list[str]:
    """Return the names of this process's threads except the main one and those that survive a fork safely."""
    numbers = [number for number in os.listdir("/proc/self/task") if int(number) != os.getpid()]
    names = [Path(f"/proc/self/task/{number}/comm").read_text(encoding="utf-8").strip() for number in numbers]
    return [name for name in names if name not in _HARMLESS]


def _import_new(modules: list[str]) -> bool:
    """Import modules; return True if any was new. A failing import fails again in the worker, which reports it."""
    new = [name for name in modules if name not in sys.modules]
    for name in new:
        with suppress(Exception):
            importlib.import_module(name)
    if new:
        gc.freeze()
    return bool(new)


def _run_worker(request: ForkRequest, server: int, hindrance: str) -> None:
    """Become the requested worker."""
    os.setsid()
    os.fchdir(request.folder)
    os.dup2(request.log, 1)
    os.dup2(request.log, 2)
    for descriptor in (request.folder, request.log, request.status):
        os.close(descriptor)
    if hindrance:
        os.set_inheritable(request.tasks, True)
        os.set_inheritable(request.messages, True)
        arguments = fresh(request.entry, request.path, request.tasks, request.messages, server)
        os.execve(arguments[0], arguments, request.environment)  # noqa: S606 - our own interpreter and our own code
    os.environ.clear()
    os.environ.update(request.environment)
    sys.path[:] = request.path
    importlib.invalidate_caches()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    enter(request.entry, request.tasks, request.messages, server)


def _report(status: int, text: str) -> None:
    with suppress(OSError):  # the requester is gone, which the socket reports
        os.write(status, f"{text}\n".encode())
