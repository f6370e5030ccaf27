"""How long the command line takes to answer, in seconds of wall time: whole processes, the median of five."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def main() -> None:
    """Print a line per command."""
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            seconds(command, folder)
            times = sorted(seconds(command, folder) for _ in range(RUNS))
            shown = " ".join(Path(part).name if part.endswith(".py") else part for part in command)
            print(f"{shown:45} median {statistics.median(times):5.2f} s  (min {times[0]:.2f}, max {times[-1]:.2f})")


if __name__ == "__main__":
    main()
