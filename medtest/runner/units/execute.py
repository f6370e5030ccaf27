"""A worker's main task: one seed, all its follow-ups, all systems.

A follow-up is made once and shown to every system. A batch of which only a part is to be recorded is inferred whole,
for with the same weights answers differ by about 1e-6 between batch sizes. The source's batch is always inferred, as
its answer is what follow-ups are compared with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from medtest.cases import Address, Image, PreparedSeed, Verdict
from medtest.errors import UserMistakes
from medtest.preparation import seed_factors
from medtest.records import SOURCE_FAILED
from medtest.runner.pool.messages import SHARED, Begin, Message, Place, Result, Row, UnitTask
from medtest.runner.records.rows import FinishedCase, RowMaker
from medtest.runner.units.judging import SourceAnswer, finish
from medtest.runner.units.parts import MadeCase, Parts, SystemAnswer, answers, describe
from medtest.suite.fitting import other_classes
from medtest.suite.plan import Unit
from medtest.systems.base import System

_MAX_ROWS = 256


class Outbox:
    """Collects rows and sends them now and then, so that pipes carry few messages.

    Args:
        send: Puts a message into the pipe.
        seconds: Time that rows may wait.
    """

    def __init__(self, send: Callable[[Message], None], seconds: float) -> None:
        self.send = send
        self._seconds = seconds
        self._rows: dict[int, list[Row]] = {}
        self._count = 0
        self._sent = time.monotonic()

    def add(self, index: int, system: int, case: int, row: tuple[Any, ...]) -> None:
        """Take one row of a unit."""
        self._rows.setdefault(index, []).append((system, case, row))
        self._count += 1

    def flush(self, *, now: bool = False) -> None:
        """Send what has waited long enough, or all."""
        waited = time.monotonic() - self._sent
        if self._rows and (now or waited >= self._seconds or self._count >= _MAX_ROWS):
            for index, rows in self._rows.items():
                self.send(Result(index, rows))
            self._rows, self._count = {}, 0
            self._sent = time.monotonic()


class UnitRunner:
    """Runs units.

    Args:
        parts: The suite's parts.
        systems: The opened systems, in the suite's order.
        maker: Makes rows.
        outbox: Takes them.
    """

    def __init__(self, parts: Parts, systems: Sequence[System], maker: RowMaker, outbox: Outbox) -> None:
        self._parts = parts
        self._systems = systems
        self._maker = maker
        self._outbox = outbox
        self._answering: set[int] = set()

    def run(self, task: UnitTask) -> None:
        """Run one unit and send its rows.

        Raises:
            UserMistakes: A classifier's first batch is all of scores of another number of classes than the seeds have.
        """
        _UnitRun(self._parts, self._systems, self._maker, self._outbox, task, self._answering).run()


class _UnitRun:
    def __init__(
        self,
        parts: Parts,
        systems: Sequence[System],
        maker: RowMaker,
        outbox: Outbox,
        task: UnitTask,
        answering: set[int],
    ) -> None:
        self.answering = answering
        self.parts = parts
        self.systems = systems
        self.maker = maker
        self.outbox = outbox
        self.task = task
        self.unit: Unit = parts.unit(task.ref)
        self.sources = [SourceAnswer() for _ in systems]
        self.factors: Mapping[str, float | None] = {}
        self.source_sha = ""
        self.source_image: Image | None = None

    def run(self) -> None:
        self._begin(SHARED, SHARED)
        problem = self.task.given_up.get((SHARED, SHARED), "")
        seed: PreparedSeed | None = None
        if not problem:
            try:
                seed = self.parts.prepared(self.task.source, self.task.ref)
                self.factors = seed_factors(seed)
                self.source_sha = seed.sha256
                self.source_image = seed.image
            except Exception as error:  # noqa: BLE001 - a seed source may be anybody's plug-in, a file may have changed
                problem = describe(error)
        if seed is None:
            self._all_failed(f"the seed cannot be prepared: {problem}")
        else:
            for batch in range(len(self.unit.batches)):
                self._batch(seed, batch)
        self.outbox.flush(now=True)

    def _begin(self, system: int, batch: int) -> None:
        self.outbox.send(Begin(self.task.index, (system, batch)))

    def _wanted(self, system: int, batch: int) -> bool:
        start, stop = self.unit.batches[batch]
        todo = self.task.todo[system]
        return any(todo[start:stop]) or (batch == 0 and any(todo))

    def _batch(self, seed: PreparedSeed, batch: int) -> None:
        wanted = [s for s in range(len(self.systems)) if self._wanted(s, batch)]
        if not wanted:
            return
        cases = self._make(seed, batch)
        for system in wanted:
            self._system(seed, batch, system, cases)
            self.outbox.flush()

    def _make(self, seed: PreparedSeed, batch: int) -> list[MadeCase]:
        start, stop = self.unit.batches[batch]
        addresses = self.unit.cases[start:stop]
        given_up = self.task.given_up.get((SHARED, batch))
        if given_up is None:
            self._begin(SHARED, batch)
            return [self.parts.make(seed, address) for address in addresses]
        return [
            self.parts.make(seed, address)
            if address.is_source
            else MadeCase(address=address, follow=None, verdict=Verdict.ERROR, reason=f"relation: {given_up}")
            for address in addresses
        ]

    def _system(self, seed: PreparedSeed, batch: int, system: int, cases: list[MadeCase]) -> None:
        start, _ = self.unit.batches[batch]
        source = self.sources[system]
        answered = self.parts.read(seed, self._answers(batch, system, cases))
        self._check_first(seed, system, answered)
        if batch == 0:
            source.take(self.parts.oracle, seed, answered[0], lost=(system, 0) in self.task.given_up)
        todo = self.task.todo[system]
        for offset, (case, answer) in enumerate(zip(cases, answered, strict=True)):
            if todo[start + offset]:
                finished = finish(self.parts.oracle, seed, source, case, answer)
                self._row(system, start + offset, finished, case.address)

    def _check_first(self, seed: PreparedSeed, system: int, answered: list[SystemAnswer]) -> None:
        """End the run where a classifier's first answers are all of another number of classes: so will the others be.

        Raises:
            UserMistakes: They are.
        """
        asked = [answer for answer in answered if answer.elapsed_ms is not None]
        if system in self.answering or not asked:
            return
        counts = {answer.classes for answer in asked}
        if len(counts) == 1 and 0 not in counts and seed.classes is not None:
            self.outbox.flush(now=True)
            raise UserMistakes([other_classes(self.systems[system], counts.pop(), seed.classes)])
        self.answering.add(system)

    def _answers(self, batch: int, system: int, cases: list[MadeCase]) -> list[SystemAnswer]:
        place: Place = (system, batch)
        ready = [case for case in cases if case.follow is not None and not self._is_the_source(case)]
        given_up = self.task.given_up.get(place)
        if given_up is not None:
            found = [SystemAnswer(output=None, verdict=Verdict.ERROR, reason=given_up) for _ in ready]
        elif not ready or self.sources[system].lost:
            found = [SystemAnswer(output=None, verdict=Verdict.SKIP) for _ in ready]
        else:
            found = answers(self.systems[system], ready, lambda: self._begin(*place))
        by_case = iter(found)
        answered: list[SystemAnswer] = []
        for case in cases:
            if case.follow is None:
                answered.append(SystemAnswer(output=None, verdict=case.verdict, reason=case.reason))
            elif self._is_the_source(case):
                first = answered[0] if batch == 0 else self._of_source(system)
                lost = Verdict.SKIP if first.output is None else first.verdict  # the system is blamed at the source
                answered.append(replace(first, verdict=lost, elapsed_ms=None))
            else:
                answered.append(next(by_case))
        return answered

    def _is_the_source(self, case: MadeCase) -> bool:
        """Whether a follow-up is the source image itself (a measured property): the system answered it already."""
        return not case.address.is_source and case.follow is not None and case.follow.image is self.source_image

    def _of_source(self, system: int) -> SystemAnswer:
        source = self.sources[system]
        return SystemAnswer(output=source.output, verdict=source.verdict, reason=source.reason)

    def _row(self, system: int, case: int, finished: FinishedCase, address: Address) -> None:
        row = self.maker.row(
            self.systems[system].record_name, address, self.task.ref, self.factors, self.source_sha, finished
        )
        self.outbox.add(self.task.index, system, case, row)

    def _all_failed(self, reason: str) -> None:
        for system, todo in enumerate(self.task.todo):
            for index, address in enumerate(self.unit.cases):
                if todo[index]:
                    source = address.is_source
                    self._row(
                        system,
                        index,
                        FinishedCase(
                            follow=None,
                            sha256="",
                            verdict=Verdict.ERROR if source else Verdict.SKIP,
                            reason=reason if source else f"{SOURCE_FAILED}: {reason}",
                            scores={},
                            source_scores={},
                        ),
                        address,
                    )
