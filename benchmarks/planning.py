"""What a plan costs as it grows: ``python benchmarks/planning.py [--cases N …]``.

Runs ``medtest run suite=polyp_seg model=pranet plan=true``, the whole command with its start, on as many phantoms (of
which a suite has 100,000 at most, so that its relations are drawn three times) as come next to each number of cases,
and prints processor time, the clock and peak resident memory. Target: 30 s for 10,000,000 cases, and memory flat: what
it grows by is the list of seeds, and a byte a case.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

from benchmarks._sizes import options

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
COUNTED = re.compile(r"([\d,]+) cases\b")
TARGET = 30
DRAWN = ("saturation", "contrast", "white_balance", "specularity", "blur", "instrument", "feces", "blood", "text")


def plan(seeds: int, home: str) -> tuple[int, float, float, float]:
    """Return cases, seconds of processor time and of the clock, and MiB of one command."""
    words = ["run", "suite=polyp_seg", "model=pranet", "plan=true", *(f"relations.{one}.repeats=3" for one in DRAWN)]
    words.append(f"seeds.phantoms.count={seeds}")
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "medtest", *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MEDTEST_HOME": home, "COLUMNS": "200"},
    ) as child:
        said = child.stdout.read() if child.stdout is not None else ""
        _, status, used = os.wait4(child.pid, 0)  # the peak of this child alone; this process stays small
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"the plan failed with {child.returncode}: {said[-2000:]}")
    found = max(int(number.replace(",", "")) for number in COUNTED.findall(said))
    return found, used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs="+", default=SIZES)
    chosen = options(parser, cases=[100, 300])
    first = 0.0
    print(f"{'cases':>12}{'processor s':>13}{'clock s':>9}{'peak MiB':>10}{'more MiB':>10}")
    with tempfile.TemporaryDirectory(prefix="medtest-plan-") as home:
        one, *_ = plan(1, home)
        for cases in chosen.cases:
            found, used, lasted, peak = plan(max(1, round(cases / one)), home)
            first = first or peak
            print(f"{found:>12,}{used:>13.2f}{lasted:>9.2f}{peak:>10.0f}{peak - first:>10.0f}", flush=True)
    print(f"target: {TARGET} s for 10,000,000 cases, memory flat")


if __name__ == "__main__":
    main()
