"""Worker process: loads the systems, then takes tasks from one pipe and answers through another.

Systems under test run here and never in the parent, so that a hanging one can be killed, a leaking one replaced, and a
crash survived. The process is a fork of a server that holds only modules (:mod:`medtest.runner.pool.fork_server`), or a
fresh interpreter: neither a fork of the parent, which is unsafe with threads and CUDA, nor multiprocessing's spawn,
which would import the user's main module again.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from medtest.runner.pool.messages import Job, LoadedModules

NAME = "medtest-worker"
"""The process's name in ``ps`` and ``top``."""
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_FRESH = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from medtest.runner.pool.child import enter; enter(sys.argv[2], *map(int, sys.argv[3:]))"
)
_SHARED = frozenset(
    (
        *("medtest", "cv2", "httpx", "imageio", "matplotlib", "monai", "nibabel", "numpy", "openai", "pandas", "PIL"),
        *("psutil", "pyarrow", "pydantic", "pydicom", "pywt", "safetensors", "scipy", "segmentation_models_pytorch"),
        *("SimpleITK", "skimage", "statsmodels", "timm", "torch", "torchvision", "transformers"),
    )
)
"""Packages that may be imported in the server: importing them runs no user code, starts no thread and opens no device.
"""


def fresh(entry: str, path: Sequence[str], tasks: int, messages: int, parent: int) -> list[str]:
    """Return the command of a worker that is a fresh interpreter.

    Args:
        entry: ``module:function`` to run.
        path: Its ``sys.path``.
        tasks: Descriptor from which it reads tasks.
        messages: Descriptor to which it writes messages.
        parent: Process id of its parent, with which it ends.
    """
    return [sys.executable, "-c", _FRESH, json.dumps(list(path)), entry, str(tasks), str(messages), str(parent)]


def enter(entry: str, tasks: int, messages: int, parent: int) -> None:
    """Run the entry of a worker, ``module:function``; see :func:`fresh`."""
    call_process(NAME)
    module, _, function = entry.partition(":")
    getattr(importlib.import_module(module), function)(tasks, messages, parent)


def main(inbound: int, outbound: int, parent: int) -> None:
    """Run the process: its first task is a job, which names the session for the other tasks; see :func:`fresh`."""
    _die_with_parent(parent)
    _prefer_oom_kill()
    messages = _Messages(Connection(outbound, readable=False))
    tasks = _listen(Connection(inbound, writable=False))
    job = tasks.get()
    session = session_of(job)(job, messages.send)
    if not session.open():
        return
    messages.report_loaded()
    while True:
        task = tasks.get()
        if task is None:
            session.close()
            sys.stdout.flush()
            os._exit(0)
        session.run(task)
        messages.report_loaded()


class WorkerSession(Protocol):
    """Work of one job in a worker; ``Job.session`` names the class.

    Args:
        job: The job.
        send: Sends a message to the parent.
        own_process: False if it shares a process with the parent.
    """

    def __init__(self, job: Job, send: Callable[[Any], None], *, own_process: bool = True) -> None: ...

    def open(self) -> bool:
        """Load the resources of the session and return True, or report a failure and return False."""

    def run(self, task: Any) -> None:
        """Execute one task."""

    def close(self) -> None:
        """Release the resources of :meth:`open`."""


def session_of(job: Job) -> type[WorkerSession]:
    """Return the session class of a job."""
    module, _, name = job.session.partition(":")
    session: type[WorkerSession] = getattr(importlib.import_module(module), name)
    return session


class _Messages:
    """Thread-safe channel to the parent."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._known = dict.fromkeys(sys.modules)

    def send(self, message: Any) -> None:
        """Send a message."""
        with self._lock:
            self._pipe.send(message)

    def report_loaded(self) -> None:
        """Report newly loaded modules, in order, that another worker may be forked with."""
        if len(sys.modules) == len(self._known):
            return
        modules = dict.fromkeys(sys.modules)
        new = tuple(name for name in modules if name not in self._known and name.partition(".")[0] in _SHARED)
        self._known = modules
        if new:
            self.send(LoadedModules(new))


def call_process(name: str) -> None:
    """Name this process for ``ps`` and ``top``, with at most 15 characters, if the system supports it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def kill_group(pid: int) -> None:
    """Kill a process and its children."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process with its parent; elsewhere the closing pipe reports the parent's end."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _prefer_oom_kill() -> None:
    """Make the kernel kill a worker, which is recoverable, and not the parent when memory runs out."""
    with suppress(OSError):  # not Linux, or not permitted; optional
        Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")


def _listen(pipe: Connection) -> queue.SimpleQueue[Any]:
    """Read tasks in a thread, which also notices the end of the parent."""
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def read() -> None:
        while True:
            try:
                tasks.put(pipe.recv())
            except (EOFError, OSError):
                os._exit(0)
            except Exception:  # noqa: BLE001 - a job that cannot be read here would be waited for without end
                traceback.print_exc()
                os._exit(1)

    threading.Thread(target=read, name="tasks", daemon=True).start()
    return tasks
