"""How long the command line takes to answer, and a worker to be there with torch: wall seconds, the median of five."""

from __future__ import annotations

import argparse
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._sizes import options
from medtest.runner.pool.process_worker import ProcessWorker
from medtest.runner.pool.processes import FRESH_VARIABLE
from medtest.runner.pool.worker import Inbox, Worker

ROOT = Path(__file__).resolve().parents[1]
COMMANDS: tuple[tuple[str, ...], ...] = (
    (str(ROOT / "run.py"), "--help"),
    ("-m", "medtest", "--help"),
    ("-m", "medtest", "list", "relations"),
    ("-m", "medtest", "check", "polyp_seg"),
    (str(ROOT / "run.py"), "suite=polyp_seg", "plan=true"),
)
RUNS = 5


def seconds(command: tuple[str, ...], folder: str) -> float:
    """Return the wall time of one run."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *command], cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - began


class TorchJob:
    """A job that is done as it is read: torch is imported."""

    threads = 1
    session = "medtest.runner.units.session:Session"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what the worker calls."""
        return exec, ("import os, torch; os._exit(0)",)


def worker_seconds() -> float:
    """Return the wall time from asking for a worker to its end, once torch is there."""
    inbox: Inbox[tuple[Worker, Any]] = queue.SimpleQueue()
    began = time.perf_counter()
    worker = ProcessWorker(TorchJob(), inbox)
    inbox.get()
    passed = time.perf_counter() - began
    worker._process.loaded(["torch"])  # as a worker's own message does
    worker.end()
    return passed


def workers(runs: int) -> None:
    """Print a line per way in which workers are started."""
    for way, text in (("1", "a worker, fresh interpreter"), ("", "a worker, forked")):
        os.environ[FRESH_VARIABLE] = way
        first, second = worker_seconds(), worker_seconds()  # forked: imports in the worker; imports in the server
        times = sorted(worker_seconds() for _ in range(runs))
        shown = f"(min {times[0]:.2f}, max {times[-1]:.2f}; the first {first:.2f}, the second {second:.2f})"
        print(f"{text:45} median {statistics.median(times):5.2f} s  {shown}")


def main() -> None:
    """Print a line per command and per way to start a worker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--commands", type=int, default=len(COMMANDS), help="how many of the commands")
    chosen = options(parser, runs=1, commands=2)
    runs = chosen.runs
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS[: chosen.commands]:
            seconds(command, folder)
            times = sorted(seconds(command, folder) for _ in range(runs))
            shown = " ".join(Path(part).name if part.endswith(".py") else part for part in command)
            print(f"{shown:45} median {statistics.median(times):5.2f} s  (min {times[0]:.2f}, max {times[-1]:.2f})")
    workers(runs)


if __name__ == "__main__":
    main()
