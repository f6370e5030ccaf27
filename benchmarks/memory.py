"""Peak memory of a run, parent and workers, from 500 to 10,000 cases.

``python benchmarks/memory.py [--cases 500 10000] [--size 256] [--workers 2]`` runs five relations on phantoms
with a system that thresholds pixels, in a process of its own for each number of cases, and prints the peak resident
memory (the kernel's high-water mark) of the parent and of its largest worker. Target: flat within 5 %.

``--suite wce --cases 1000 41000`` runs a suite of labels that ships instead, with a classifier that looks at the mean
colour, on as many of its own seeds as come next to that number of cases.

``--suite t2i --cases 4000 113736`` runs the suite of prompts, with a server that answers at once and a reader that sees
one thing in every picture: what is left is asking, storing and recording. It prints cases a second as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil

from benchmarks._sizes import options
from medtest.cli.bootstrap import quiet_libraries
from medtest.core.cases import Address, Image, Json
from medtest.core.plugins import PartInfo, PartSettings
from medtest.core.scenes import Scene, SeenEntity, Tells
from medtest.readers.pictures.base import PictureContent, PictureReader
from medtest.suite.model import Invocation, PartPlan, Prepare, Suite
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


class TintSettings(SystemSettings):
    """Settings of :class:`Tint`.

    Attributes:
        count: Number of classes.
    """

    count: int


class Tint(Bright):
    """Says the class of the strongest channel, or one of two by the ratio of red and blue."""

    Settings = TintSettings
    tasks = ("label",)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Compare mean colours."""
        count: int = self.settings.count
        answers: list[RawAnswer] = []
        for image in images:
            red, green, blue = (float(v) + 1.0 for v in image.mean(axis=(0, 1)))
            shares = [red, blue * 1.7] if count == 2 else [red, green * 1.3, blue * 1.7, *([1.0] * (count - 3))]
            answers.append(np.array(shares) / sum(shares))
        return answers


def masks_suite(cases: int, size: int) -> Suite:
    """Return five relations on phantoms of polyps, with :class:`Bright`."""
    from benchmarks.runner import make_suite, plan_of

    info = PartInfo(family="systems", name="bright", target="benchmarks.memory:Bright")
    return replace(
        make_suite("pranet", 1),
        seeds=(plan_of("seeds", "phantoms", count=round(cases / (1 + 5 * len(RELATIONS))), size=[size, size]),),
        relations=tuple(plan_of("relations", name) for name in RELATIONS),
        systems=(PartPlan(id="bright", info=info, settings=SystemSettings()),),
        prepare=Prepare(size=None),
    )


def labels_suite(name: str, cases: int) -> Suite:
    """Return a suite of labels that ships, with :class:`Tint`."""
    from medtest.suite.compose import load

    suite = load(name, []).suite
    relations = suite.build_relations().values()
    each = 1 + sum(len(r.severities()) * r.frames() * r.settings.repeats for r in relations)
    suite = load(name, [f"seeds.{suite.seeds[0].id}.count={max(2, round(cases / each))}"]).suite
    source = suite.build_seeds(None)[0]
    classes = source.classes()
    assert classes is not None  # noqa: S101 - suites of labels have classes
    info = PartInfo(family="systems", name="tint", target="benchmarks.memory:Tint")
    settings = TintSettings(count=len(classes.names))
    return replace(suite, systems=(PartPlan(id="tint", info=info, settings=settings),))


class Shrug(PictureReader):
    """Sees a thing in the middle of every picture."""

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the same scene for all."""
        seen = SeenEntity(name="dog", box=(0.25, 0.25, 0.75, 0.75))
        return [Scene(entities=(seen,), tells=Tells(counts=False)) for _ in images]


@contextmanager
def prompts_suite(name: str, cases: int) -> Iterator[Suite]:
    """Yield a suite of prompts that ships, on an instant server, with :class:`Shrug`."""
    from benchmarks.pictures import instant

    suite = load_suite(name, [])
    each = 1 + sum(relation.repeats() for relation in suite.build_relations().values())
    count = max(2, round(cases / each))
    with instant(128, 50) as base_url:
        model = ["model=openai_images_compatible", f"base_url={base_url}", "model_name=instant", "max_in_flight=32"]
        suite = load_suite(name, [f"seeds.{suite.seeds[0].id}.count={count}", *model])
        info = PartInfo(family="readers", name="shrug", target="benchmarks.memory:Shrug")
        reader = PartPlan(id="shrug", info=info, settings=PartSettings())
        yield replace(suite, oracle=replace(suite.oracle, reader=reader))


def load_suite(name: str, overrides: list[str]) -> Suite:
    """Return a suite that ships."""
    from medtest.suite.compose import load

    return load(name, overrides).suite


def high_water(pid: int) -> int:
    """Return the kernel's high-water mark of a process in bytes, 0 when it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def run_once(cases: int, size: int, workers: int, name: str) -> None:
    """Run a suite of so many cases and print peaks as JSON; called in a process of its own."""
    if name and load_suite(name, []).task.prompts:
        with prompts_suite(name, cases) as suite:
            _measured(suite, workers)
    else:
        _measured(labels_suite(name, cases) if name else masks_suite(cases, size), workers)


def _measured(suite: Suite, workers: int) -> None:
    from medtest.runner.reporting.outcome import Limits
    from medtest.runner.run import run_suite

    peaks: dict[int, int] = {}
    done = threading.Event()

    def watch() -> None:
        parent = psutil.Process()
        while not done.wait(0.1):
            for child in parent.children(recursive=True):  # workers are children of a server
                peaks[child.pid] = max(peaks.get(child.pid, 0), high_water(child.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    with tempfile.TemporaryDirectory() as home:
        invocation = Invocation(home=Path(home), quiet=True, workers=workers)
        outcome = run_suite(suite, invocation, limits=Limits(samples=0))
    done.set()
    watcher.join()
    found = outcome.systems[0].finished
    peak = {"parent": high_water(psutil.Process().pid), "worker": max(peaks.values())}
    print(json.dumps({"cases": found, "seconds": outcome.running_seconds, **peak}))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs="+", default=[500, 10_000])
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--suite", default="", help="a suite of labels that ships")
    parser.add_argument("--once", type=int, default=0, help=argparse.SUPPRESS)
    args = options(parser, cases=[20, 40], workers=1, size=128)
    quiet_libraries()  # as the command line does, before Arrow chooses its allocator
    if args.once:
        from benchmarks import memory  # workers know its classes by this name and not by that of the main module

        memory.run_once(args.once, args.size, args.workers, args.suite)
        return
    first: dict[str, int] = {}
    for cases in args.cases:
        command = [sys.executable, "-m", "benchmarks.memory", "--once", str(cases)]
        command += ["--size", str(args.size), "--workers", str(args.workers), "--suite", args.suite]
        root = Path(__file__).resolve().parents[1]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
        found = json.loads(done.stdout)
        first = first or found
        ratios = {who: found[who] / first[who] for who in ("parent", "worker")}
        for who, ratio in ratios.items():
            print(f"{found['cases']:7,d} cases  {who:7s} {found[who] / 2**20:8.1f} MiB  × {ratio:.3f}")
        print(
            f"{found['cases']:7,d} cases  in {found['seconds']:.0f} s, {found['cases'] / found['seconds']:.0f} a second"
        )
    print("target: within 5 %")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
