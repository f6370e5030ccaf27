"""A server that runs commands in forks of a process which has their libraries, so that none imports them again.

Importing MLflow and torch takes a command, and the worker it starts, longer than everything else that it does at
reduced size. :class:`CommandServer` puts a ``python`` and a ``medtest`` into a folder for ``PATH``; a process started
by these names runs the same main function in a fork of the server, with the caller's arguments, environment, working
directory and standard files. Its workers come from a fork server of the product, which is forked as well.
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
from contextlib import suppress
from pathlib import Path

from forked_program import COMMANDS, exit_code, lend_workers

from medtest.cli.bootstrap import quiet_libraries
from medtest.runner.pool import fork_server

HERE = Path(__file__).parent
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
    """The server, as a context.

    Args:
        folder: Folder of its socket and of the programs for ``PATH``.
        environment: Environment under which its libraries are loaded.
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

    def environment(self, variables: dict[str, str]) -> dict[str, str]:
        """Return an environment in which ``python`` and ``medtest`` are this server's."""
        return {**variables, "PATH": f"{self._folder}{os.pathsep}{variables['PATH']}"}

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
    for name in COMMANDS:
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
    """Run a command in a child and return its exit code."""
    _, files, _, _ = socket.recv_fds(caller, 1, 3)
    request = json.loads(caller.makefile("rb").readline())
    pid = os.fork()
    if pid == 0:
        caller.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(request["folder"])
        environment = request["environment"]
        environment["PATH"] = environment["PATH"].partition(os.pathsep)[2]
        os.environ.clear()
        os.environ.update(environment)
        os._exit(_run(request["argv"]))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):
        caller.sendall(b"%d\n" % (status if status >= 0 else 128 - status))
    return 0


def _run(argv: list[str]) -> int:
    """Run a command in this process; return its exit code."""

    def python() -> None:
        sys.argv = argv[1:]
        sys.path.insert(0, str(Path(argv[1]).resolve().parent))
        runpy.run_path(argv[1], run_name="__main__")

    def medtest() -> int | None:
        from medtest.__main__ import main

        sys.argv = argv if argv[0] == "medtest" else argv[2:]
        return main()

    server = lend_workers()
    try:
        return exit_code(python if argv[0] == "python" and argv[1].endswith(".py") else medtest)
    finally:
        server.close()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main()
