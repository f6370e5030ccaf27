"""Peak memory of a run, parent and workers, from 500 to 10,000 cases.

``python benchmarks/memory.py [--cases 500 10000] [--size 256] [--workers 2]`` runs five relations on phantoms
with a system that thresholds pixels, in a process of its own for each number of cases, and prints the peak resident
memory (the kernel's high-water mark) of the parent and of its largest worker. Target: flat within 5 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from medtest.cases import Address, Image, Json
from medtest.plugins import PartInfo
from medtest.suite.model import Invocation, PartPlan, Prepare
from medtest.systems.base import RawAnswer, System, SystemSettings

RELATIONS = ("saturation", "contrast", "white_balance", "blur", "text")


class Bright(System):
    """Says that what is bright is lesion."""

    def fingerprint(self) -> dict[str, Json]:
        """Return nothing: it has no files."""
        return {}

    def open(self, *, device: str, threads: int) -> None:
        """Load nothing."""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Threshold the red channel."""
        return [image[..., 0] > 150 for image in images]


def high_water(pid: int) -> int:
    """Return the kernel's high-water mark of a process in bytes, 0 when it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def run_once(cases: int, size: int, workers: int) -> None:
    """Run a suite of so many cases and print peaks as JSON; called in a process of its own."""
    from benchmarks.runner import make_suite, plan_of
    from medtest.runner import Limits, run_suite

    per_seed = 1 + 5 * len(RELATIONS)
    count = round(cases / per_seed)
    suite = make_suite("pranet", 1)
    info = PartInfo(family="systems", name="bright", target="benchmarks.memory:Bright")
    suite = replace(
        suite,
        seeds=(plan_of("seeds", "phantoms", count=count, size=[size, size]),),
        relations=tuple(plan_of("relations", name) for name in RELATIONS),
        systems=(PartPlan(id="bright", info=info, settings=SystemSettings()),),
        prepare=Prepare(size=None),
    )
    peaks: dict[int, int] = {}
    done = threading.Event()

    def watch() -> None:
        parent = psutil.Process()
        while not done.wait(0.1):
            for child in parent.children():
                peaks[child.pid] = max(peaks.get(child.pid, 0), high_water(child.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with tempfile.TemporaryDirectory() as home:
        invocation = Invocation(home=Path(home), quiet=True, workers=workers)
        outcome = run_suite(suite, invocation, limits=Limits(samples=0))
    done.set()
    watcher.join()
    found = outcome.systems[0].finished
    print(json.dumps({"cases": found, "parent": high_water(psutil.Process().pid), "worker": max(peaks.values())}))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs="+", default=[500, 10_000])
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--once", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        run_once(args.once, args.size, args.workers)
        return
    first: dict[str, int] = {}
    for cases in args.cases:
        command = [sys.executable, "-m", "benchmarks.memory", "--once", str(cases)]
        command += ["--size", str(args.size), "--workers", str(args.workers)]
        root = Path(__file__).resolve().parents[1]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
        found = json.loads(done.stdout)
        first = first or found
        ratios = {who: found[who] / first[who] for who in ("parent", "worker")}
        for who, ratio in ratios.items():
            print(f"{found['cases']:7,d} cases  {who:7s} {found[who] / 2**20:8.1f} MiB  × {ratio:.3f}")  # noqa: RUF001
    print("target: within 5 %")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
