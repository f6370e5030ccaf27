"""A worker that judges stored answers again: it reads truth and replays effects, and loads no system."""

from __future__ import annotations

from typing import Any, NamedTuple

from medtest.core.cases import Address, FollowUp, Output, PreparedSeed, Verdict
from medtest.core.errors import MedtestError
from medtest.core.tasks.base import SystemInput
from medtest.relations.base import CraftedRelation
from medtest.runner.pool.messages import Device, Done, JudgeTask, StoredCase, TaskResult
from medtest.runner.records.rows import COLUMN
from medtest.runner.units.judging import SourceAnswer, finish
from medtest.runner.units.parts import MadeCase, SystemAnswer, describe
from medtest.runner.units.session import Session
from medtest.suite.plan import Unit

SESSION = "medtest.runner.units.again:JudgingSession"


class JudgedAgain(NamedTuple):
    """What came of a task.

    Attributes:
        system: The system's index.
        unit: The unit's number.
        rows: Cases by their index in the unit, with their records under today's oracle.
        problems: Why others could not be judged, each reason once.
    """

    system: int
    unit: int
    rows: list[tuple[int, tuple[Any, ...]]]
    problems: tuple[str, ...]


class JudgingSession(Session):
    """The life of a worker that judges again."""

    def _load(self) -> None:
        self.send(Device("cpu"))
        self._systems = []
        self._build()
        self.rows = self._maker()

    def run(self, task: Any) -> None:
        """Judge the cases of one task; what cannot be judged is not sent, and its record stays."""
        if isinstance(task, JudgeTask):
            rows, problems = self._judged(task)
            shown = tuple(self.scrub.reason(problem, task.ref) for problem in dict.fromkeys(problems))
            self.send(TaskResult(task.index, JudgedAgain(task.system, task.unit, rows, shown)))
        self.send(Done(task.index, self._memory()))

    def _judged(self, task: JudgeTask) -> tuple[list[tuple[int, tuple[Any, ...]]], list[str]]:
        rows: list[tuple[int, tuple[Any, ...]]] = []
        problems: list[str] = []
        try:
            again = _Again(self, task, self.parts.prepared(task.source, task.ref))
        except Exception as error:  # noqa: BLE001 - a seed source may be anybody's plug-in, a file may be gone
            return rows, [f"a seed cannot be prepared: {describe(error)}"]
        for stored in task.cases:
            try:
                row = again.judged(stored)
            except Exception as error:  # noqa: BLE001 - tasks and relations may be anybody's plug-ins
                problems.append(describe(error))
                continue
            if stored.wanted:
                rows.append((stored.case, row))
        return rows, problems

    def close(self) -> None:
        """Nothing was opened."""


class _Again:
    """The cases of one task.

    Args:
        session: Whose parts are used.
        task: The task.
        seed: Its seed, prepared.
    """

    def __init__(self, session: JudgingSession, task: JudgeTask, seed: PreparedSeed) -> None:
        self._parts, self._maker = session.parts, session.rows
        self._task, self._seed = task, seed
        self._unit: Unit = session.parts.unit(task.ref)
        self._sources: dict[int, SourceAnswer] = {}

    def judged(self, stored: StoredCase) -> tuple[Any, ...]:
        """Return a case's record as the oracle judges it now; sources come before their follow-ups.

        Raises:
            MedtestError: It cannot be made again.
        """
        address, question = self._unit.cases[stored.case], stored.case // self._unit.row
        made = self._made(address)
        answer = SystemAnswer(
            output=None if stored.answer is None else self._restored(stored.answer, made),
            verdict=Verdict.PASS if stored.answer is not None else Verdict(stored.row[COLUMN["verdict"]]),
            reason="" if stored.answer is not None else str(stored.row[COLUMN["reason"]]),
            elapsed_ms=stored.row[COLUMN["elapsed_ms"]],
        )
        if address.is_source:
            source = SourceAnswer()
            source.take(self._parts.oracle, self._seed, answer)
            self._sources[question] = source
        known = self._sources.get(question)
        if known is None:
            raise MedtestError("the answer to its source cannot be judged")
        finished = finish(self._parts.oracle, self._seed, known, made, answer)
        return self._maker.judged_again(stored.row, address, self._task.ref, finished)

    def _made(self, address: Address) -> MadeCase:
        """Return what a relation made of the seed; of what is crafted on a system no more than that nothing moved.

        Raises:
            MedtestError: It cannot be made again.
        """
        if isinstance(self._parts.relations.get(address.relation), CraftedRelation):
            follow = FollowUp(image=self._seed.image, params={}, scale=0.0)
            return MadeCase(address=address, follow=follow, kind=self._seed.kind)
        made = self._parts.make(self._seed, address)
        if made.follow is None:
            raise MedtestError(f"{address.stem} cannot be made again: {made.reason}")
        return made

    def _restored(self, answer: bytes, made: MadeCase) -> Output:
        seed, follow = self._seed, made.follow
        image = seed.image if follow is None else follow.image
        return made.task.restore(answer, seed, SystemInput(image=image, spec=seed.spec, classes=seed.classes))
