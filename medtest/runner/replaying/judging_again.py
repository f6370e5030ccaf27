"""Judging of stored answers again before a run: by a later revision of an oracle, or with a new score.

Records are rewritten as results arrive, in shards that are complete or absent, so that a stopped run can be resumed. No
system is asked. If a seed or a follow-up cannot be reconstructed, its records stay unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, groupby

import numpy as np

from medtest.core.records import ANSWER
from medtest.runner.pool.dispatch import Dispatcher
from medtest.runner.pool.layout import Layout
from medtest.runner.pool.messages import Job, JudgeTask, PoolTask, StoredCase
from medtest.runner.pool.stopping import stop_gently
from medtest.runner.pool.workplace import Workplace
from medtest.runner.prepared import PreparedRun
from medtest.runner.records.answers import AnswerStore
from medtest.runner.records.ledger import RecordLedger
from medtest.runner.records.rows import COLUMN, restated
from medtest.runner.reporting.outcome import Limits
from medtest.runner.units.again import SESSION, JudgedAgain
from medtest.suite.model import Invocation


@dataclass
class JudgingAgain:
    """Records of a run's folders that an earlier revision judged.

    Attributes:
        prepared: The run.
        invocation: Its invocation.
        ledgers: The systems' records.
        limits: Limits of the run.
        interrupted: True if the user stopped it.
        notices: Lines for the user.
    """

    prepared: PreparedRun
    invocation: Invocation
    ledgers: Sequence[RecordLedger]
    limits: Limits
    interrupted: bool = False
    notices: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._wanted: Counter[int] = Counter()
        self._done: Counter[int] = Counter()
        self._problems: list[str] = []

    @property
    def needed(self) -> bool:
        """True if there are any."""
        return any(ledger.standing is not None for ledger in self.ledgers)

    def run(self, job: Job, workplace: Workplace) -> None:
        """Judge the stored answers; :attr:`notices` then describe the result.

        Args:
            job: The job of the workers.
            workplace: Location of the workers.

        Raises:
            MedtestError: Workers could not start, or records cannot be written.
        """
        self._restate()
        tasks = self._tasks()
        first = next(tasks, None)
        try:
            if first is not None:
                self._dispatch(replace(job, device="cpu", session=SESSION), workplace, chain([first], tasks))
        finally:
            for ledger in self.ledgers:
                ledger.flush()
        self.notices += self._result_lines()

    def _restate(self) -> None:
        """Write today's revision to the records of cases without an answer."""
        revision = self.prepared.suite.build_oracle().revision
        for ledger in self.ledgers:
            if ledger.standing is not None:
                for place, values in ledger.old_records(ledger.standing.restate):
                    ledger.restate(place, restated(values, revision))
                    ledger.tick()

    def _tasks(self) -> Iterator[PoolTask]:
        """Yield a task for each seed of each system with answers to judge."""
        for system, ledger in enumerate(self.ledgers):
            standing = ledger.standing
            if standing is None or not standing.judge.any():
                continue
            row, width = ledger.places.row, ledger.places.width
            needed = standing.judge.copy()
            needed[np.flatnonzero(standing.judge) // row * row] = True  # sources, with which follow-ups are compared
            store = AnswerStore(ledger.folder)
            for unit, records in groupby(ledger.old_records(needed), key=lambda record: record[0] // width):
                cases = []
                for place, values in records:
                    name = str(values[COLUMN[ANSWER]] or "")
                    answer = store.read(name.encode()) if name else None
                    if name and answer is None:  # altered since: cases that depend on it are asked again
                        ledger.ask_again(range(place, place + row) if place % row == 0 else (place,))
                        continue
                    cases.append(StoredCase(place % width, values, answer, bool(standing.judge[place])))
                count = sum(case.wanted for case in cases)
                if count:
                    self._wanted[system] += count
                    yield self._task(system, unit, tuple(cases))

    def _task(self, system: int, unit: int, cases: tuple[StoredCase, ...]) -> JudgeTask:
        prepared = self.prepared
        return JudgeTask(
            index=system * len(prepared.plan.refs) + unit,
            source=int(prepared.owners[unit]),
            ref=prepared.plan.refs[unit],
            unit=unit,
            system=system,
            cases=cases,
        )

    def _dispatch(self, job: Job, workplace: Workplace, tasks: Iterator[PoolTask]) -> None:
        dispatcher = Dispatcher(
            job=job,
            tasks=tasks,
            batch_seconds=self.invocation.batch_seconds,
            limits=self.limits,
            workplace=workplace,
            loads="the suite",
            result=self._take,
            renew=lambda task: None,
            tick=self._tick,
            layout=lambda _: self._layout(workplace),
        )
        try:
            with stop_gently(dispatcher), closing(workplace):
                workplace.open()
                dispatcher.run()
            if dispatcher.stop:
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.interrupted = True
        self.notices += dispatcher.notices

    def _layout(self, workplace: Workplace) -> Layout:
        standings = [ledger.standing for ledger in self.ledgers if ledger.standing is not None]
        width = self.ledgers[0].places.width
        units = sum(int(standing.judge.reshape(-1, width).any(axis=1).sum()) for standing in standings)
        return workplace.layout(device="cpu", units=max(1, units), workers=self.invocation.workers, threads=1)

    def _take(self, judged: JudgedAgain, _index: int) -> None:
        ledger = self.ledgers[judged.system]
        for case, row in judged.rows:
            ledger.restate(judged.unit * ledger.places.width + case, row)
        self._done[judged.system] += len(judged.rows)
        self._problems += judged.problems

    def _tick(self) -> None:
        for ledger in self.ledgers:
            ledger.tick()

    def _result_lines(self) -> Iterator[str]:
        oracle = self.prepared.suite.build_oracle()
        name = f"oracle {self.prepared.suite.oracle.part.info.name}, revision {oracle.revision}"
        for number, count in sorted(self._wanted.items()):
            system, judged = self.prepared.systems[number].record_name, self._done[number]
            if judged:
                yield f"{system}: {_cases(judged)} judged again from stored answers ({name}); no system was queried."
            if judged < count and not self.interrupted:
                reason = f": {self._problems[0]}" if self._problems else ""
                yield (
                    f"{system}: {_cases(count - judged)} could not be judged again{reason}. Their records keep the "
                    "judgement of an earlier revision; run the same command again once the data are available."
                )


def _cases(count: int) -> str:
    return f"{count:,} finished case{'s' * (count != 1)}"
