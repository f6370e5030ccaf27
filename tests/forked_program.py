"""Programs that run in a fork of a process with their libraries; they are killed and signalled as others are.

A fresh interpreter imports for longer than most tests let it work, and so does the fork server of the workers
that it starts. A :class:`Program` is forked by the product's own fork server, and its workers come from a fork of it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from medtest.cli import bootstrap
from medtest.runner.pool import child, fork_server, processes

COMMANDS = (
    "medtest.__main__",
    "medtest.cli.app",
    "medtest.cli.run.launch",
    "medtest.runner.followups.worker",
    "medtest.report",
    "medtest.runner.units.session",
    "medtest.report.tracking",
    "mlflow",
    "mlflow.store.tracking.sqlalchemy_store",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "openai",
    "pandas",
    "scipy.ndimage",
    "scipy.stats",
    "statsmodels.api",
    "torch",
)
"""What commands and their workers spend their time on importing."""


class Program:
    """A started program, with the methods of a ``subprocess.Popen`` of text.

    Args:
        body: Source of the program.
        modules: Modules imported before the fork.
        environment: Its environment; that of this process by default.
        folder: Its working directory; that of this process by default.
        lend: Its workers come from a fork of it; else it starts a server for them as any program does.
    """

    def __init__(
        self,
        body: str,
        *,
        modules: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        lend: bool = True,
    ) -> None:
        self._said = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in ("output", "error")]  # noqa: SIM115
        self.returncode: int | None = None
        with tempfile.TemporaryFile("w+", encoding="utf-8") as plan:
            files = [file.fileno() for file in self._said]
            json.dump({"body": body, "folder": str(folder or Path.cwd()), "lend": lend}, plan)
            plan.flush()
            self._process = processes.start(
                processes.WorkerStart(
                    entry="forked_program:run",
                    modules=tuple(modules),
                    environment=dict(environment or os.environ),
                    tasks=plan.fileno(),
                    messages=files[0],
                    log=self._said[1],
                )
            )
            self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends; return the exit code."""
        if self.returncode is None:
            self.returncode = self._process.wait(timeout)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait until it ends; return its standard output and error."""
        self.wait(timeout)
        self._process.close()
        for file in self._said:
            file.seek(0)
        out, err = (file.read() for file in self._said)
        return out, err

    def send_signal(self, number: int) -> None:
        """Send the process a signal, and none of those that it started."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def with_libraries(body: str, *, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Program:
    """Start a program in a fork of a process that has the libraries of commands."""
    quiet = {**bootstrap._QUIET, **(environment or os.environ), "FORKED_COMMANDS": "1"}  # others' workers hold less
    return Program(body, modules=COMMANDS, environment=quiet, folder=folder)


def command(*line: str | Path, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Program:
    """Start a Python file with arguments, in a fork of a process that has the libraries of commands."""
    argv = [str(word) for word in line]
    body = f"import runpy\nsys.argv = {argv!r}\nrunpy.run_path({argv[0]!r}, run_name='__main__')\n"
    return with_libraries(body, environment=environment, folder=folder)


def run(plan: int, out: int, parent: int) -> None:
    """Become the program; called by the fork server, whose process id is the last argument."""
    child.call_process("python")
    with os.fdopen(plan, encoding="utf-8") as file:
        file.seek(0)
        spec = json.load(file)
    os.dup2(out, 1)
    os.close(out)
    os.chdir(spec["folder"])
    if spec["lend"]:
        lend_workers()
    code = compile(spec["body"], "program", "exec")
    os._exit(exit_code(lambda: exec(code, {"__name__": "__main__", "sys": sys})))  # noqa: S102 - a test's own text


def exit_code(program: Callable[[], object]) -> int:
    """Run a program in this process; return the exit code that an interpreter would end with."""
    try:
        return int(program() or 0)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()


class _Fork:
    """A forked process, waited for as those of subprocess are."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def wait(self, timeout: float | None = None) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)


def lend_workers() -> processes.ForkServer:
    """Take this process's workers from a fork of its present state, with modules and nothing else."""
    own_end, other_end = socket.socketpair()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        own_end.close()
        os.setsid()
        child.call_process(fork_server.NAME)
        try:
            fork_server.Server(other_end.detach(), parent).serve()
        except BaseException:  # noqa: BLE001 - a worker ends like this
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    other_end.close()
    lent, own = processes.ForkServer(_Fork(pid), own_end), processes._server
    limits = processes._inherited({})[3:]

    def server(start: processes.WorkerStart) -> processes.ForkServer:
        """Return the fork, or a new server if a limit was set since."""
        return lent if processes._inherited({})[3:] == limits else own(start)

    processes._server = server
    return lent
