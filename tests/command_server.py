"""Runs many command lines without importing their libraries anew: a process that has them forks one for each.

Importing MLflow and torch takes a command, and the worker it starts, longer than everything else that it does at
reduced size. :class:`CommandServer` puts a ``python`` and a ``medtest`` into a folder for ``PATH``; what is started by
those names runs the same main function in a fork of the server, with the caller's arguments, environment, working
directory and standard files. Its workers come from a fork server of the product's own, which is forked as well.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from medtest.cli.bootstrap import quiet_libraries
from medtest.runner.pool import fork_server, processes

HERE = Path(__file__).parent
_MODULES = (
    "medtest.__main__",
    "medtest.cli.app",
    "medtest.cli.run.launch",
    "medtest.followups.worker",
    "medtest.report",
    "medtest.runner.units.session",
    "medtest.tracking",
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
    "torchvision",
)
"""What commands and their workers spend their time on importing."""
_SHIM = """\
#!{python} -ISE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = {{"argv": [{name!r}, *sys.argv[1:]], "folder": os.getcwd(), "environment": dict(os.environ)}}
    socket.send_fds(server, [b"c"], [0, 1, 2])
    server.sendall(json.dumps(asked).encode() + b"\\n")
    code = server.makefile("rb").readline()
os._exit(int(code or b"70"))
"""


class CommandServer:
    """The server as its user sees it; a context.

    Args:
        folder: Where its socket and the programs for ``PATH`` lie.
        environment: What its libraries are loaded under.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        folder.mkdir()
        address = folder / "socket"
        for name in ("python", "medtest"):
            (folder / name).write_text(_SHIM.format(python=sys.executable, address=str(address), name=name))
            (folder / name).chmod(0o755)
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), str(address)], env=environment, stdin=subprocess.PIPE
        )
        while not address.exists():
            assert self._process.poll() is None, "the server of commands could not start"
            time.sleep(0.05)

    def environment(self, given: dict[str, str]) -> dict[str, str]:
        """Return an environment in which ``python`` and ``medtest`` are this server's."""
        return {**given, "PATH": f"{self._folder}{os.pathsep}{given['PATH']}"}

    def __enter__(self) -> CommandServer:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def main() -> None:
    """Serve on the socket that the argument names until standard input is closed."""
    import select

    sys.path.remove(str(HERE))
    quiet_libraries()
    for name in _MODULES:
        importlib.import_module(name)
    gc.freeze()
    assert not fork_server.obstacle(), fork_server.obstacle()
    address = Path(sys.argv[1])
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address.with_suffix(".new")))
        listening.listen(16)
        address.with_suffix(".new").rename(address)
        while True:
            ready, _, _ = select.select([0, listening], [], [])
            if 0 in ready:
                return
            with listening.accept()[0] as caller:
                if os.fork() == 0:
                    listening.close()
                    os._exit(_command(caller))
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _command(caller: socket.socket) -> int:
    """Run a command in a child and say its exit code."""
    _, files, _, _ = socket.recv_fds(caller, 1, 3)
    asked = json.loads(caller.makefile("rb").readline())
    pid = os.fork()
    if pid == 0:
        caller.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(asked["folder"])
        environment = asked["environment"]
        environment["PATH"] = environment["PATH"].partition(os.pathsep)[2]
        os.environ.clear()
        os.environ.update(environment)
        code = _run(asked["argv"])
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):
        caller.sendall(b"%d\n" % (status if status >= 0 else 128 - status))
    return 0


def _run(argv: list[str]) -> int:
    """Run a command in this process; return its exit code."""
    server = _lend_workers()
    try:
        if argv[0] == "python" and argv[1].endswith(".py"):
            sys.argv = argv[1:]
            sys.path.insert(0, str(Path(argv[1]).resolve().parent))
            runpy.run_path(argv[1], run_name="__main__")
            return 0
        from medtest.__main__ import main as medtest

        sys.argv = argv if argv[0] == "medtest" else argv[2:]
        return int(medtest() or 0)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - what an interpreter does with it
        traceback.print_exc()
        return 1
    finally:
        server.close()


class _Fork:
    """A process that was forked, waited for as those of subprocess are."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def wait(self, timeout: float | None = None) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)


def _lend_workers() -> processes.ForkServer:
    """Let this process's workers come from a fork of it as it is now, when it holds modules and nothing else."""
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        ours.close()
        try:
            fork_server.Server(theirs.detach(), parent).serve()
        except BaseException:  # noqa: BLE001 - a worker ends like this
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    theirs.close()
    server = processes.ForkServer(_Fork(pid), ours)
    processes._server = lambda what: server
    return server


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main()
