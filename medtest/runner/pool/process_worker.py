"""Workers that are processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from medtest.api.redact import redact
from medtest.runner.pool import processes
from medtest.runner.pool.allocator import keeping_memory
from medtest.runner.pool.messages import Gone, LoadedModules
from medtest.runner.pool.worker import Worker

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_LAST_WORDS = 400


class ProcessWorker(Worker):
    """Worker process of this machine; see :mod:`medtest.runner.pool.processes`."""

    def _begin(self, job: Any) -> None:
        """Start the process and send it its job."""
        self._log = tempfile.TemporaryFile(prefix="medtest-worker-")  # noqa: SIM115 - closed with the worker
        self._process = self._start(job)
        threading.Thread(target=self._read, daemon=True).start()
        self._send(job)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def _start(self, job: Any) -> processes.Process:
        task_read, task_write = os.pipe()
        message_read, message_write = os.pipe()
        try:
            process = processes.start(
                processes.WorkerStart(
                    entry="medtest.runner.pool.child:main",
                    modules=(job.session.partition(":")[0],),
                    environment={
                        **os.environ,
                        **dict.fromkeys(THREAD_VARIABLES, str(job.threads)),
                        **keeping_memory(os.environ),
                    },
                    tasks=task_read,
                    messages=message_write,
                    log=self._log,
                )
            )
        except BaseException:
            for descriptor in (task_read, task_write, message_read, message_write):
                os.close(descriptor)
            raise
        os.close(task_read)
        os.close(message_write)
        self._tasks = Connection(task_write, readable=False)
        self._messages = Connection(message_read, writable=False)
        return process

    def _read(self) -> None:
        with self._messages as pipe:
            while True:
                try:
                    message = pipe.recv()
                except (EOFError, OSError):
                    break
                if isinstance(message, LoadedModules):
                    self._process.loaded(message.modules)
                else:
                    self._inbox.put((self, message))
        self._inbox.put((self, Gone()))

    def _send(self, task: Any) -> None:
        with suppress(OSError):  # it is gone; the closed pipe reports that
            self._tasks.send(task)

    def kill(self) -> None:
        """Kill the process and its children."""
        self._process.kill()

    def end(self, *, patience: float = 0.0) -> None:
        """Wait for its end, kill it after ``patience`` seconds, and release its resources."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=patience)
        self.kill()
        self._process.wait()
        self._process.close()
        self._tasks.close()
        self._log.close()

    def death(self) -> str:
        """Describe how the process ended."""
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        if code < 0:
            return f"was killed by {_signal_name(-code)}"
        return f"ended with exit code {code}"

    def last_words(self) -> str:
        """Return the end of its standard output and error, with private texts removed."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - _LAST_WORDS))
        return redact(self._log.read().decode(errors="replace").strip())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
