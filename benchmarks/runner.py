"""What running a suite costs beside the forwards themselves.

``python benchmarks/runner.py [--seeds N] [--passes N] [--model NAME] [--weights FILE]`` runs all relations on phantoms
with a compact network, and compares with bare loops that hand images in the same batches to the same system:
sequential with one thread, with as many threads as cores, and in as many one-thread processes as there are cores.
Workers keep freed memory (medtest.runner.pool.allocator), which makes forwards faster than a plain interpreter's, so
that the loops run under the same settings, and the last also under the plain ones. The fastest of all is "bare".
Loading networks counts on neither side. Everything is repeated (median of five by default), suite and loops in turn,
so that a busy machine treats them alike. A loop takes fewer images than the suite (``--loop``), for its time a case
does not depend on their number. With a network ten times as slow only the two fastest kinds of loop run. Targets: at
most 3 ms wall a case above bare; at most 1.15 × bare with a network ten times as slow. About six minutes on two idle
cores.

``--pairs N`` prints instead which share of a worker's processor time bare inference with the compact PraNet is, in N
interleaved pairs: the median and its spread. Target: 0.85.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks._sizes import options
from medtest.core.cases import Address, Image
from medtest.core.plugins import PartInfo, part, parts
from medtest.runner.pool.allocator import keeping_memory
from medtest.runner.pool.layout import usable_cores
from medtest.runner.reporting.outcome import Limits
from medtest.runner.run import run_suite
from medtest.suite.model import Criterion, Invocation, OraclePlan, PartPlan, Suite
from medtest.systems.base import RawAnswer, System
from medtest.systems.segmentation.families import PraNetSystem, SSFormerSystem

RELATIONS = (
    "unchanged saturation contrast white_balance specularity blur instrument feces blood text".split()  # noqa: SIM905
)
WEIGHTS = "MEDTEST_BENCH_WEIGHTS"
BATCH = 8
LOOP = {"pranet": 96, "ssformer": 96, "ten_times": 32}
"""Images of a bare loop, at most."""


class _Chosen:
    """Takes the weights from a variable of the environment, where they are not the shipped ones."""

    @property
    def compact_weights(self) -> Path:
        chosen = os.environ.get(WEIGHTS)
        return Path(chosen) if chosen else super().compact_weights  # type: ignore[misc,no-any-return]


class PraNet(_Chosen, PraNetSystem):
    """The compact PraNet."""


class SSFormer(_Chosen, SSFormerSystem):
    """The compact SSFormer."""


class TenTimes(PraNet):
    """A network ten times as slow: it computes each batch ten times."""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Answer ten times, give the last answer."""
        for _ in range(9):
            super().predict(images, addresses)
        return super().predict(images, addresses)


SYSTEMS: dict[str, type[System]] = {"pranet": PraNet, "ssformer": SSFormer, "ten_times": TenTimes}


def plan_of(family: Any, name: str, **settings: Any) -> PartPlan:
    """Return a part with the settings of its YAML file and some more."""
    info = part(family, name)
    return PartPlan(id=name, info=info, settings=info.load().Settings(**{**info.defaults, **settings}))


def system_plan(name: str) -> PartPlan:
    """Return one of the systems above as a suite holds it."""
    defaults = part("systems", "pranet" if name == "ten_times" else name).defaults
    info = PartInfo(family="systems", name=name, target=f"benchmarks.runner:{SYSTEMS[name].__name__}")
    return PartPlan(id=name.replace("_", "-"), info=info, settings=SYSTEMS[name].Settings(**defaults))


def make_suite(system: str, seeds: int) -> Suite:
    """Return a suite of all relations on phantoms for one system."""
    masks = parts("oracles")["masks"]
    return Suite(
        name="benchmark",
        version="1",
        description="",
        seed=1,
        seeds=(plan_of("seeds", "phantoms", count=seeds),),
        relations=tuple(plan_of("relations", name) for name in RELATIONS),
        systems=(system_plan(system),),
        oracle=OraclePlan(
            part=PartPlan(id="masks", info=masks, settings=masks.load().Settings()),
            primary=Criterion(),
            scores=("dice",),
            thresholds=(0.25,),
            against=("truth",),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds a case: in the suite, and in each bare loop."""

    suite: float
    bare: dict[str, float]

    @property
    def best(self) -> float:
        """The fastest bare loop's."""
        return min(self.bare.values())


def bare_loop(plan: PartPlan, cases: int, processes: int, threads: int, *, keeping: bool) -> float:
    """Return wall seconds of bare forwards, spread over processes that begin together once all have loaded.

    With ``keeping`` their allocator is set as that of the runner's workers.
    """
    job = pickle.dumps((plan, cases // processes, threads))
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(sys.path)}
    if keeping:
        environment |= keeping_memory(environment)
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.runner", "--child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        for _ in range(processes)
    ]
    for process in started:
        assert process.stdin and process.stdout  # noqa: S101 - PIPE was asked for
        process.stdin.write(len(job).to_bytes(8, "little") + job)
        process.stdin.flush()
    for process in started:
        _expect(process, "ready")
    began = time.perf_counter()
    for process in started:
        process.stdin.close()  # type: ignore[union-attr]
    for process in started:
        _expect(process, "done")
    seconds = time.perf_counter() - began
    for process in started:
        process.wait()
    return seconds


def _expect(process: subprocess.Popen[bytes], word: str) -> None:
    said = process.stdout.readline().decode().strip()  # type: ignore[union-attr]
    if said != word:
        raise SystemExit("a bare loop ended early; nothing is measured")


def child() -> None:
    """Load a system, say so, wait for the start, run its share."""
    import numpy as np

    source = sys.stdin.buffer
    plan, cases, threads = pickle.loads(source.read(int.from_bytes(source.read(8), "little")))  # noqa: S301 - our own
    system = plan.info.load()(plan.id, plan.settings)
    system.open(device="cpu", threads=threads)
    rng = np.random.default_rng(0)
    batch = [rng.integers(0, 256, (512, 512, 3), dtype=np.uint8) for _ in range(BATCH)]
    addresses = [Address(dataset="d", seed_id="s")] * BATCH
    system.predict(batch, addresses)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    source.read()
    for start in range(0, cases, BATCH):
        count = min(BATCH, cases - start)
        system.predict(batch[:count], addresses[:count])
    sys.stdout.write("done\n")
    sys.stdout.flush()


def measure(system: str, seeds: int, passes: int, loop: int) -> tuple[Timing, list[float]]:
    """Return medians of suite and bare loops in turn, and the ratio suite/bare of each pass."""
    suite = make_suite(system, seeds)
    cores = usable_cores()
    layouts = {f"one process, {cores} threads": (1, cores, True), f"{cores} one-thread processes": (cores, 1, True)}
    if system != "ten_times":
        layouts["sequential"] = (1, 1, True)
        layouts[f"{cores} processes, plain allocator"] = (cores, 1, False)
    images = -(-min(loop, LOOP[system]) // (BATCH * cores)) * BATCH * cores
    suites: list[float] = []
    bare: dict[str, list[float]] = {name: [] for name in layouts}
    ratios: list[float] = []
    for _ in range(passes):
        with tempfile.TemporaryDirectory() as home:
            outcome = run_suite(suite, Invocation(home=Path(home), quiet=True, device="cpu"), limits=Limits(samples=0))
        cases = outcome.systems[0].finished
        if outcome.systems[0].counts["ERROR"]:
            raise SystemExit("the suite has errors; nothing is measured")
        suites.append(outcome.running_seconds / cases)
        for name, (processes, threads, keeping) in layouts.items():
            seconds = bare_loop(suite.systems[0], images, processes, threads, keeping=keeping)
            bare[name].append(seconds / images)
        ratios.append(suites[-1] / min(times[-1] for times in bare.values()))
    medians = {name: statistics.median(times) for name, times in bare.items()}
    return Timing(suite=statistics.median(suites), bare=medians), ratios


class Clocked(PraNet):
    """The compact PraNet, which keeps how much processor time its forwards took."""

    seconds = 0.0

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Answer and keep the time."""
        began = time.process_time()
        answers = super().predict(images, addresses)
        self.seconds += time.process_time() - began
        return answers


def worker_of(suite: Suite) -> tuple[Callable[[int], None], Clocked, int]:
    """Return what runs a unit by its number as a worker does, in this process, its system, and a unit's cases."""
    from medtest.runner.pool.messages import UnitTask
    from medtest.runner.privacy.rules import Scrubber, ShownNames
    from medtest.runner.records.rows import RowMaker
    from medtest.runner.units.execute import UnitRunner
    from medtest.runner.units.open_units import Outbox, Recorder
    from medtest.runner.units.parts import Parts

    parts_ = Parts(suite, None, BATCH)
    system = Clocked("pranet", suite.systems[0].settings)
    system.open(device="cpu", threads=1)
    groups = {name: relation.group for name, relation in parts_.relations.items()}
    names = ShownNames()
    maker = RowMaker(
        suite=("benchmark", "1"),
        groups=groups,
        oracle=parts_.oracle,
        strata=(),
        names=names,
        scrub=Scrubber(names),
    )
    outbox = Outbox(lambda _: None, 0.5)
    runner = UnitRunner(Recorder(parts=parts_, systems=[system], maker=maker, outbox=outbox))
    refs = parts_.sources[0].refs()
    cases = len(parts_.unit(refs[0]).cases)

    def run(index: int) -> None:
        runner.run(UnitTask(index=index, source=0, ref=refs[index], todo=(b"\x01" * cases,)))

    return run, system, cases


def share(pairs: int) -> None:
    """Print which share of a worker's processor time bare inference takes, unit by unit in turn.

    Each pair is one seed with all its follow-ups in a worker's loop, and as many images of noise in the same batches
    handed to the same system, one after the other in changing order: what else the machine does slows both alike.
    """
    import numpy as np

    run, system, cases = worker_of(make_suite("pranet", pairs + 1))
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (512, 512, 3), dtype=np.uint8) for _ in range(BATCH)]
    addresses = [Address(dataset="d", seed_id="s")] * BATCH

    def bare() -> None:
        for start in range(0, cases, BATCH):
            count = min(BATCH, cases - start)
            system.predict(images[:count], addresses[:count])

    times: list[tuple[float, float]] = []
    for index in range(pairs + 1):
        took: dict[str, float] = {}
        for name in ("worker", "bare") if index % 2 else ("bare", "worker"):
            began = time.process_time()
            bare() if name == "bare" else run(index)
            took[name] = time.process_time() - began
        times.append((took["bare"], took["worker"]))
    shares = sorted(alone / whole for alone, whole in times[1:])  # the first pair loads and warms
    low, middle, high = (float(np.quantile(shares, at)) for at in (0.25, 0.5, 0.75))
    alone, whole = (1000 * statistics.median(column) / cases for column in zip(*times[1:], strict=True))
    print(
        f"bare {alone:.2f} ms a case, worker {whole:.2f} ms, processor time; medians of {pairs} seeds of {cases} cases"
    )
    print(
        f"share of bare inference: median {middle:.3f}, middle half {low:.3f} to {high:.3f}, "
        f"all {shares[0]:.3f} to {shares[-1]:.3f} (target 0.85)"
    )


def processor_time(seeds: int) -> None:
    """Print what a worker does beside forwards, in processor time, which a busy machine leaves as it is.

    A worker's loop runs in this process with one thread; what the parent adds is measured in a run of its own, less
    what a run of no case takes. On two idle cores the wall overhead is half of the sum, for both work at a time.
    """
    suite = make_suite("pranet", seeds)
    run, system, cases = worker_of(suite)
    spent: list[float] = []
    forwards: list[float] = []
    for index in range(seeds):
        system.seconds, began = 0.0, time.process_time()
        run(index)
        spent.append((time.process_time() - began) / cases)
        forwards.append(system.seconds / cases)
    beside = [total - forward for total, forward in zip(spent[1:], forwards[1:], strict=True)]
    began = time.process_time()
    with tempfile.TemporaryDirectory() as home:
        invocation = Invocation(home=Path(home), quiet=True, device="cpu")
        run_suite(suite, replace(invocation, limit=1), limits=Limits(samples=0))
        middle = time.process_time()
        run_suite(suite, invocation, limits=Limits(samples=0))
    parent = (time.process_time() - middle - (middle - began)) / (cases * (seeds - 2))
    print(f"processor time a case, {seeds} seeds of {cases} cases (the first left out)")
    print(f"  forward                     {1000 * statistics.median(forwards[1:]):7.2f} ms")
    print(f"  beside it, in the worker    {1000 * statistics.median(beside):7.2f} ms")
    print(f"  in the parent               {1000 * max(0.0, parent):7.2f} ms")
    wall = (statistics.median(beside) + max(0.0, parent)) / 2
    print(f"  wall overhead on two idle cores, by this: {1000 * wall:.2f} ms")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--loop", type=int, default=max(LOOP.values()), help="images of a bare loop, at most")
    parser.add_argument("--model", choices=["pranet", "ssformer"], default="pranet")
    parser.add_argument("--weights", default="", help="weights other than the shipped ones")
    parser.add_argument("--skip-slow", action="store_true", help="leave the network ten times as slow out")
    parser.add_argument("--processor-time", action="store_true", help="for a busy machine")
    parser.add_argument("--pairs", type=int, default=0, help="print the share of bare inference in so many pairs")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = options(parser, seeds=1, passes=1, loop=16, skip_slow=True)
    if args.child:
        child()
        return
    if args.weights:
        os.environ[WEIGHTS] = str(Path(args.weights).resolve())
    if args.pairs:
        kept = keeping_memory(os.environ)
        if kept:  # as workers are started; there is none left to set in the process that this starts
            command = [sys.executable, "-m", "benchmarks.runner", f"--pairs={args.pairs}"]
            paths = os.pathsep.join(sys.path)
            subprocess.run(command, check=True, env={**os.environ, **kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths})
        else:
            share(args.pairs)
        return
    if args.processor_time:
        processor_time(args.seeds)
        return
    for system, seeds in ((args.model, args.seeds), *((("ten_times", 2),) if not args.skip_slow else ())):
        timing, ratios = measure(system, seeds, args.passes, args.loop)
        print(f"{system}: {seeds} seeds, median of {args.passes}")
        for name, seconds in timing.bare.items():
            print(f"  bare, {name:28s} {1000 * seconds:8.2f} ms a case")
        print(f"  suite                              {1000 * timing.suite:8.2f} ms a case")
        print(f"  overhead {1000 * (timing.suite - timing.best):.2f} ms a case (target with a compact network: 3)")
        print(f"  ratio    {statistics.median(ratios):.3f} (target with a network ten times as slow: 1.15)")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    sys.modules["benchmarks.runner"] = sys.modules["__main__"]
    main()
