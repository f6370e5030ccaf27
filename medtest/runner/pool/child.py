"""A worker process: loads the systems, then takes tasks from one pipe and answers through another.

Systems under test run here and never in the parent, so that one that hangs can be killed, one that leaks be replaced
and one that takes its process down be survived. The process is a fork of a server that holds modules and nothing else
(:mod:`medtest.runner.pool.fork_server`), or a fresh interpreter: neither a fork of the parent, which is unsafe beside
threads and CUDA, nor multiprocessing's spawn, which would import the user's main module again.
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
"""Packages that may be imported in the server: none runs a user's code, starts a thread or opens a device by that."""


def fresh(entry: str, path: Sequence[str], tasks: int, messages: int, parent: int) -> list[str]:
    """Return the command of a worker that is a fresh interpreter.

    Args:
        entry: ``module:function`` that it runs.
        path: Its ``sys.path``.
        tasks: Descriptor from which it reads tasks.
        messages: Descriptor into which it writes messages.
        parent: Process id of its parent, with which it ends.
    """
    return [sys.executable, "-c", _FRESH, json.dumps(list(path)), entry, str(tasks), str(messages), str(parent)]


def enter(entry: str, tasks: int, messages: int, parent: int) -> None:
    """Run the entry of a worker, ``module:function``; see :func:`fresh`."""
    call_process(NAME)
    module, _, function = entry.partition(":")
    getattr(importlib.import_module(module), function)(tasks, messages, parent)


def main(inbound: int, outbound: int, parent: int) -> None:
    """Run the process: its first task is a job, which names the session that does the others; see :func:`fresh`."""
    _die_with(parent)
    _be_the_first_to_go()
    messages = _Messages(Connection(outbound, readable=False))
    tasks = _listen(Connection(inbound, writable=False))
    job = tasks.get()
    session = session_of(job)(job, messages.send)
    if not session.open():
        return
    messages.tell_loaded()
    while True:
        task = tasks.get()
        if task is None:
            session.close()
            sys.stdout.flush()
            os._exit(0)
        session.run(task)
        messages.tell_loaded()


class WorkerSession(Protocol):
    """Work of one job in a worker; ``Job.session`` names the class.

    Args:
        job: The job.
        send: Sends a message to the parent.
        own_process: False where it shares a process with the parent.
    """

    def __init__(self, job: Job, send: Callable[[Any], None], *, own_process: bool = True) -> None: ...

    def open(self) -> bool:
        """Load what the work needs and return True, or report a failure and return False."""

    def run(self, task: Any) -> None:
        """Do one task."""

    def close(self) -> None:
        """Free what :meth:`open` took."""


def session_of(job: Job) -> type[WorkerSession]:
    """Return the class that does a job's work."""
    module, _, name = job.session.partition(":")
    session: type[WorkerSession] = getattr(importlib.import_module(module), name)
    return session


class _Messages:
    """The way to the parent, for any thread."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._known = dict.fromkeys(sys.modules)

    def send(self, message: Any) -> None:
        """Send a message."""
        with self._lock:
            self._pipe.send(message)

    def tell_loaded(self) -> None:
        """Tell which modules came to be loaded, in their order, of those that another worker may be forked with."""
        if len(sys.modules) == len(self._known):
            return
        modules = dict.fromkeys(sys.modules)
        new = tuple(name for name in modules if name not in self._known and name.partition(".")[0] in _SHARED)
        self._known = modules
        if new:
            self.send(LoadedModules(new))


def call_process(name: str) -> None:
    """Give this process a name of at most 15 characters that ``ps`` and ``top`` show, where that can be."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process with its parent; elsewhere the closing pipe tells."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _be_the_first_to_go() -> None:
    """When memory runs out the kernel shall kill a worker, which is survived, and not the parent."""
    with suppress(OSError):  # not Linux, or not allowed: nothing is lost
        Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")


def _listen(pipe: Connection) -> queue.SimpleQueue[Any]:
    """Read tasks in a thread, which also notices when the parent is gone."""
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
