"""What the parent of a run takes in: rows a second, from workers' pipes to closed shards, and merging at the end.

``python benchmarks/intake.py [--rows N] [--workers N …]`` starts the dispatcher and worker processes of a run, whose
workers test nothing: they make rows and send them as fast as they can, so that the parent is what is slow. Its ledger
and shards, and the thread that receives, are those of a run. Printed are rows by second of the parent's processor time,
which other work on the machine hardly changes, and by the clock. Target: 5,000 rows a second. Where a network takes g
seconds for a row the parent then feeds 5,000 · g workers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks._sizes import options
from medtest.core.cases import Verdict
from medtest.runner.pool.dispatch import Dispatcher
from medtest.runner.pool.layout import Layout
from medtest.runner.pool.messages import Done, Job, PoolTask, Row, UnitTask
from medtest.runner.prepared import PreparedRun, prepare_run
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.ledger import CasePlaces, RecordLedger
from medtest.runner.records.rows import FinishedCase, RowMaker
from medtest.runner.reporting.outcome import Limits
from medtest.runner.units.open_units import Outbox
from medtest.runner.units.session import Session
from medtest.suite.compose import load
from medtest.suite.model import Invocation
from medtest.suite.plan import Plan

TARGET = 5000


class RowsSession(Session):
    """The life of a worker that tests nothing and sends the rows of every unit it is given."""

    def _load(self) -> None:
        self._build()
        suite = self._job.suite
        self._outbox = Outbox(self.send, self._job.send_seconds)
        self._maker = RowMaker(
            suite=(suite.name, suite.version),
            groups={name: relation.group for name, relation in self.parts.relations.items()},
            oracle=self.parts.oracle,
            strata=self._job.strata,
            names=self.names,
            scrub=self.scrub,
        )
        self._systems = []
        scores = dict.fromkeys(self.parts.oracle.scores, 0.8765432101234)
        follow: Any = SimpleNamespace(scale=1.5, params={"gamma": 1.2345678901, "centre": [0.25, 0.75]}, facts={})
        self._finished = FinishedCase(
            verdict=Verdict.PASS, follow=follow, sha256="0" * 64, elapsed_ms=12.5, scores=scores, source_scores=scores
        )

    def run(self, task: Any) -> None:
        """Send a unit's rows; hashes differ from row to row as they do in a run."""
        unit = Plan([task.ref], self.parts.relations, self._job.batch_size).unit(0, 0)
        for case, address in enumerate(unit.cases):
            row = self._maker.row("benchmark", address, task.ref, {"brightness": 101.5}, "1" * 64, self._finished)
            self._outbox.add(task.index, (0, case, row, ()))
        self._outbox.flush()
        self._outbox.flush(now=True)
        self.send(Done(task.index, self._memory()))


class _Parent:
    """The parent of a run, with one ledger."""

    def __init__(self, folder: Path, rows: int) -> None:
        per_seed = _prepared(folder, 1).plan.cases_per_seed
        self.prepared = _prepared(folder, max(1, rows // per_seed))
        self.ledger = RecordLedger(
            folder=folder / "records",
            schema=self.prepared.schema,
            digest="benchmark",
            primary=self.prepared.suite.oracle.primary,
            places=CasePlaces(self.prepared.plan, ShownNames()),
            chosen=self.prepared.chosen,
            limits=Limits(),
        )
        self.first: tuple[float, float] | None = None

    def tasks(self) -> Iterator[PoolTask]:
        """Yield every unit."""
        for index, ref in enumerate(self.prepared.plan.refs):
            yield UnitTask(index=index, source=0, ref=ref, todo=(self.ledger.todo(index),))

    def take(self, rows: list[Row], unit: int) -> None:
        """Take rows; the first ones start the clocks."""
        self.first = self.first or (time.process_time(), time.perf_counter())
        for _, case, row, answer in rows:
            self.ledger.take(unit, case, row, answer)

    def run(self, workers: int) -> tuple[float, float]:
        """Take all rows; return seconds of processor time and of the clock."""
        job = Job.of(
            self.prepared.suite,
            Invocation(home=self.ledger.folder),
            hash_key=None,
            device="cpu",
            send_seconds=Limits().send_seconds,
            session="benchmarks.intake:RowsSession",
        )
        dispatcher = Dispatcher(
            job=job,
            tasks=self.tasks(),
            batch_seconds=600,
            limits=Limits(),
            result=self.take,
            renew=lambda task: task,
            layout=lambda _device: Layout(workers=workers, threads=1),
            tick=self.ledger.tick,
            loads="nothing",
        )
        dispatcher.run()
        self.ledger.flush()
        if self.first is None or self.ledger.left:
            raise RuntimeError(f"{self.ledger.left} rows did not come")
        return time.process_time() - self.first[0], time.perf_counter() - self.first[1]


def _prepared(folder: Path, seeds: int) -> PreparedRun:
    suite = load("polyp_seg", ["model=pranet", f"seeds.phantoms.count={seeds}"]).suite
    return prepare_run(suite, Invocation(home=folder))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    chosen = options(parser, rows=300, workers=[1])
    print(f"{'workers':>8}{'rows':>10}{'rows a processor second':>26}{'by the clock':>14}{'merged a second':>18}")
    for workers in chosen.workers:
        with tempfile.TemporaryDirectory(prefix="medtest-intake-") as folder:
            parent = _Parent(Path(folder), chosen.rows)
            used, lasted = parent.run(workers)
            began = time.process_time()
            counts = parent.ledger.merge(lambda table: table)
            merging = time.process_time() - began
            rows = int(counts.sum())
        print(
            f"{workers:>8}{rows:>10,}{rows / used:>26,.0f}{rows / lasted:>14,.0f}{rows / merging:>18,.0f}", flush=True
        )
    print(f"target: {TARGET:,} rows a second")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks import intake  # workers know its classes by this name and not by that of the main module

    intake.main()
