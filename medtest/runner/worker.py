"""A worker process: loads the systems, then takes tasks from one pipe and answers through another.

Systems under test run here and never in the parent, so that one that hangs can be killed, one that leaks be replaced
and one that takes its process down be survived. The process is a fresh interpreter (neither fork, which is unsafe
beside threads and CUDA, nor multiprocessing's spawn, which would import the user's main module again).
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def main(make_session: Callable[[Any, Callable[[Any], None]], Any] | None = None) -> None:
    """Run the process; the arguments are the pipes' descriptors and the parent's process id.

    Args:
        make_session: Makes what does the work from the job and the way to the parent; the runner's
            :class:`~medtest.runner.session.Session` by default. Other rooms' workers bring their own.
    """
    inbound, outbound, parent = (int(text) for text in sys.argv[2:5])
    _die_with(parent)
    _be_the_first_to_go()
    messages = Connection(outbound, readable=False)
    tasks = _listen(Connection(inbound, writable=False))
    if make_session is None:
        from medtest.runner.session import Session

        make_session = Session
    job = tasks.get()
    session = make_session(job, messages.send)
    if not session.open():
        return
    while True:
        task = tasks.get()
        if task is None:
            session.close()
            return
        session.run(task)


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
