"""Start of the product's server in a separate process, with guaranteed termination."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from medtest.core.errors import MedtestError
from medtest.simlab.config import Config

START_SECONDS = 60.0
_STOP_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Running:
    """A running server.

    Attributes:
        base_url: Address for clients.
        pid: Process id.
    """

    base_url: str
    pid: int
    process: subprocess.Popen[str] = field(repr=False)

    def stop(self) -> None:
        """Stop it, by force if needed; does nothing if it has ended."""
        with contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def start(config: Config) -> Running:
    """Start a server that ends with this process, even after SIGKILL, and return once it listens.

    On Linux the kernel kills it with the calling thread, which should therefore live as long as the process. On all
    systems it ends when this process's end of its standard input is closed.

    Args:
        config: Configuration; ``parent`` is set here.

    Raises:
        MedtestError: It did not start.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "medtest.simlab.serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**{k: v for k, v in os.environ.items() if "KEY" not in k}, "OMP_NUM_THREADS": "1"},
    )
    running = Running(base_url="", pid=process.pid, process=process)
    try:
        if process.stdin is None:
            raise MedtestError("the simulated laboratory has no standard input")
        process.stdin.write(replace(config, parent=os.getpid()).to_json() + "\n")
        process.stdin.flush()
        address = json.loads(_first_line(process))
    except (OSError, ValueError, MedtestError) as error:
        running.stop()
        raise MedtestError(f"the simulated laboratory did not start: {error}") from error
    return replace(running, base_url=str(address["base_url"]))


def _first_line(process: subprocess.Popen[str]) -> str:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    output = process.stdout
    if output is None:
        raise MedtestError("it has no standard output")
    threading.Thread(target=lambda: lines.put(output.readline()), name="simlab", daemon=True).start()
    try:
        line = lines.get(timeout=START_SECONDS)
    except queue.Empty as error:
        raise MedtestError(f"it did not listen within {START_SECONDS:g} s") from error
    if not line:
        raise MedtestError(f"its process ended with code {process.wait()}")
    return line


@contextlib.contextmanager
def running(config: Config) -> Iterator[Running]:
    """Run a server and always stop it at the end of the block."""
    server = start(config)
    try:
        yield server
    finally:
        server.stop()
