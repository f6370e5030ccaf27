"""What it costs to keep answers and thumbnails: ``python benchmarks/answers.py [--seeds N] [--passes N]``.

The compact PraNet answers phantoms and their follow-ups at 512 × 512. For ``answers: compact`` and ``answers: maps`` a
line says how many milliseconds of processor time a case takes in a worker (what the task keeps, and its SHA-256) and in
the parent (the packs on disk), and how many kB a case takes on disk; a further line says the same of thumbnails.
Targets of ``compact``: 0.3 ms in the worker and 1.2 kB; of thumbnails: 0.5 ms in the worker. About half a minute on one
core. ``MEDTEST_BENCH_SIZES=small`` takes one seed and one pass.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from benchmarks._sizes import options
from medtest.core.cases import Output, PreparedSeed
from medtest.core.plugins import PartInfo, part
from medtest.core.records import ADDRESS, ANSWER
from medtest.core.tasks.base import task_of
from medtest.runner.records.answers import AnswerWriter, KeptAnswer, packs_of
from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.parts import Parts, answers
from medtest.runner.units.showing import Thumbnails
from medtest.suite.model import Criterion, OraclePlan, PartPlan, Suite

RELATIONS = ("saturation", "blur", "instrument", "text")


def main() -> None:
    """Measure both forms and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--passes", type=int, default=5)
    chosen = options(parser, seeds=1, passes=1)
    parts, given = answered(chosen.seeds)
    print(f"{len(given)} answers of the compact PraNet at 512 × 512, median of {chosen.passes} passes")
    print(f"{'answers':>10}  {'worker ms':>10}  {'parent ms':>10}  {'kB a case':>10}")
    measured(given, kept_answers(given, "maps"))  # libraries load
    works = {form: kept_answers(given, form) for form in ("compact", "maps")} | {"thumbnails": thumbnails(parts, given)}
    for form, work in works.items():
        found = [measured(given, work) for _ in range(chosen.passes)]
        worker, parent, size = (statistics.median(one[at] for one in found) for at in range(3))
        print(f"{form:>10}  {worker:>10.3f}  {parent:>10.3f}  {size / 1000:>10.2f}")


Given: TypeAlias = "list[tuple[PreparedSeed, MadeCase, Output]]"


def answered(seeds: int) -> tuple[Parts, Given]:
    """Return the suite's parts, and answers with their seeds and cases."""
    suite = _suite(seeds)
    parts, (system,) = Parts(suite, None, 8), suite.build_systems().values()
    system.open(device="cpu", threads=1)
    found: Given = []
    for number, ref in parts.refs():
        seed, unit = parts.prepared(number, ref), parts.unit(ref)
        for start, stop in unit.batches:
            made = [parts.make(seed, address) for address in unit.cases[start:stop]]
            shown = [case for case in made if case.follow is not None]
            said = answers(system, shown, lambda: None)
            pairs = zip(shown, said, strict=True)
            found += [(seed, case, answer.output) for case, answer in pairs if answer.output is not None]
    system.close()
    return parts, found


def kept_answers(given: Given, form: str) -> Callable[[], list[KeptAnswer]]:
    """Return the work of keeping the answers."""
    task = task_of("mask")

    def work() -> list[KeptAnswer]:
        stored = (task.storage.keep(output, seed, maps=form == "maps") for seed, _, output in given)
        return [KeptAnswer.of(data, form) for data in stored if data is not None]

    return work


def thumbnails(parts: Parts, given: Given) -> Callable[[], list[KeptAnswer]]:
    """Return the work of making the thumbnails of all cases of one system."""

    def work() -> list[KeptAnswer]:
        made: list[KeptAnswer] = []
        of_seed: tuple[PreparedSeed, Thumbnails] | None = None
        for seed, case, output in given:
            if of_seed is None or of_seed[0] is not seed:
                of_seed = seed, Thumbnails(parts, seed)
            record = {ADDRESS: str(case.address), "followup_sha256": case.sha256, ANSWER: ""}
            made += of_seed[1].of(case, output, record)
        return made

    return work


def measured(given: Given, work: Callable[[], list[KeptAnswer]]) -> tuple[float, float, float]:
    """Return milliseconds a case in the worker and in the parent, and bytes a case on disk."""
    kept: list[KeptAnswer] = []

    def keep() -> None:
        kept.extend(work())

    with tempfile.TemporaryDirectory() as folder:
        writer = AnswerWriter(Path(folder))

        def write() -> None:
            for answer in kept:
                writer.add(answer)
                if writer.full:
                    writer.flush()
            writer.flush()

        times = [_milliseconds(work) / len(given) for work in (keep, write)]
        size = sum(path.stat().st_size for path in packs_of(Path(folder)))
    return times[0], times[1], size / len(given)


def _milliseconds(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return 1000.0 * (time.process_time() - began)


def _plan(family: str, name: str, **more: object) -> PartPlan:
    info: PartInfo = part(family, name)  # type: ignore[arg-type]
    return PartPlan(id=name, info=info, settings=info.load().Settings(**{**info.defaults, **more}))


def _suite(seeds: int) -> Suite:
    info = part("oracles", "masks")
    oracle = PartPlan(id="masks", info=info, settings=info.load().Settings())
    return Suite(
        name="benchmark",
        version="1",
        description="",
        seed=1,
        seeds=(_plan("seeds", "phantoms", count=seeds),),
        relations=tuple(_plan("relations", name) for name in RELATIONS),
        systems=(_plan("systems", "pranet"),),
        oracle=OraclePlan(part=oracle, primary=Criterion(), scores=("dice",), thresholds=(0.25,), against=("truth",)),
    )


if __name__ == "__main__":
    main()
