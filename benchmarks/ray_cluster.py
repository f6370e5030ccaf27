"""What living on a Ray cluster costs a run: wall time by Ray ÷ by local processes, on this machine.

``python benchmarks/ray_cluster.py [--cases N] [--pairs N] [--workers N] [--model NAME]`` runs a suite of phantoms both
ways in interleaved pairs, each time from nothing, with as many workers. Counted is the wall time from the first worker
being ready to the last case; that of Ray's start stands apart, and so does that of loading. The first pair warms caches
and does not count. Target: a median ratio of at most 1.15 at 5,000 cases on two cores.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks._sizes import need, options
from medtest.runner.pool.layout import usable_cores
from medtest.runner.reporting.outcome import Limits
from medtest.runner.run import run_suite
from medtest.suite.compose import load
from medtest.suite.model import Invocation, Suite
from medtest.suite.schema import ExecutorBlock

RELATIONS = "blur contrast saturation text"
TARGET = 1.15


def _suite(model: str, cases: int) -> Suite:
    """Return a suite of about so many cases: four relations of five severities, and the source, for each seed."""
    relations = RELATIONS.split()
    seeds = max(1, round(cases / (1 + 5 * len(relations))))
    overrides = [f"model={model}", f"relations=[{','.join(relations)}]", f"seeds.phantoms.count={seeds}"]
    return load("polyp_seg", overrides).suite


def _run(suite: Suite, workers: int, cluster: ExecutorBlock | None) -> tuple[float, float, int]:
    """Run from nothing; return seconds of the cases, seconds of all, and how many cases there were."""
    with tempfile.TemporaryDirectory(prefix="medtest-ray-") as home:
        invocation = Invocation(home=Path(home), quiet=True, workers=workers, threads=1, device="cpu", cluster=cluster)
        began = time.perf_counter()
        outcome = run_suite(suite, invocation, limits=Limits(samples=0))
        return outcome.running_seconds, time.perf_counter() - began, outcome.systems[0].cases_executed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=usable_cores())
    parser.add_argument("--model", default="pranet")
    chosen = options(parser, cases=42, pairs=1, workers=1)
    need("ray", "'medtest[ray]'")
    suite = _suite(chosen.model, chosen.cases)
    ratios = []
    for number in range(chosen.pairs + 1):
        local, local_all, cases = _run(suite, chosen.workers, None)
        far, far_all, _ = _run(suite, chosen.workers, ExecutorBlock())
        counted = "" if number else "  (warms, does not count)"
        print(
            f"{cases:,} cases: local {local:7.1f} s ({local_all:.1f} with loading), ray {far:7.1f} s "
            f"({far_all:.1f} with Ray's start and loading), ratio {far / local:.3f}{counted}",
            flush=True,
        )
        if number:
            ratios.append(far / local)
    spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
    print(f"median ratio {statistics.median(ratios):.3f} ({spread}) of {len(ratios)} pairs; target {TARGET}")


if __name__ == "__main__":
    main()
