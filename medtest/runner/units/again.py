"""Worker that judges stored answers again: reads truth and replays effects, without loading systems."""

from __future__ import annotations

from typing import Any, NamedTuple

from medtest.core.cases import Address, FollowUp, Output, PreparedSeed, Reason, ReasonCode, Verdict
from medtest.core.errors import MedtestError
from medtest.core.tasks.base import SystemInput
from medtest.relations.base import CraftedRelation
from medtest.runner.pool.messages import Device, Done, JudgeTask, StoredCase, TaskResult
from medtest.runner.records.rows import COLUMN
from medtest.runner.units.judging import SourceAnswer, finish
from medtest.runner.units.made_case import MadeCase, SystemAnswer, describe
from medtest.runner.units.session import Session
from medtest.suite.plan import Unit

SESSION = "medtest.runner.units.again:JudgingSession"


class JudgedAgain(NamedTuple):
    """Result of a task.

    Attributes:
        system: The system's index.
        unit: The unit's number.
        rows: Cases by their index in the unit, with their records under today's oracle.
        problems: Distinct reasons why other cases could not be judged.
    """

    system: int
    unit: int
    rows: list[tuple[int, tuple[Any, ...]]]
    problems: tuple[str, ...]


class JudgingSession(Session):
    """Session of a worker that judges again."""

    def _load(self) -> None:
        self.send(Device("cpu"))
        self._systems = []
        self._build()
        self.rows = self._maker()

    def run(self, task: Any) -> None:
        """Judge the cases of one task; cases that fail are not sent, and keep their records."""
        if isinstance(task, JudgeTask):
            rows, problems = self._judged(task)
            reasons = tuple(self.scrub.reason(problem, task.ref) for problem in dict.fromkeys(problems))
            self.send(TaskResult(task.index, JudgedAgain(task.system, task.unit, rows, reasons)))
        self.send(Done(task.index, self._memory()))

    def _judged(self, task: JudgeTask) -> tuple[list[tuple[int, tuple[Any, ...]]], list[str]]:
        rows: list[tuple[int, tuple[Any, ...]]] = []
        problems: list[str] = []
        try:
            again = _Again(self, task, self.parts.prepared(task.source, task.ref))
        except Exception as error:  # noqa: BLE001 - a seed source may come from a plug-in, a file may be gone
            return rows, [f"a seed cannot be prepared: {describe(error)}"]
        for stored in task.cases:
            try:
                row = again.judged(stored)
            except Exception as error:  # noqa: BLE001 - tasks and relations may come from plug-ins
                problems.append(describe(error))
                continue
            if stored.wanted:
                rows.append((stored.case, row))
        return rows, problems

    def close(self) -> None:
        """Do nothing, because nothing was opened."""


class _Again:
    """Cases of one task.

    Args:
        session: Session with the parts.
        task: The task.
        seed: Its seed, prepared.
    """

    def __init__(self, session: JudgingSession, task: JudgeTask, seed: PreparedSeed) -> None:
        self._parts, self._maker = session.parts, session.rows
        self._task, self._seed = task, seed
        self._unit: Unit = session.parts.unit(task.ref)
        self._sources: dict[int, SourceAnswer] = {}

    def judged(self, stored: StoredCase) -> tuple[Any, ...]:
        """Return a case's record as judged now; sources come before their follow-ups.

        Raises:
            MedtestError: The case cannot be reconstructed.
        """
        address, question = self._unit.cases[stored.case], stored.case // self._unit.row
        case = self._made(address)
        verdict, code, text, elapsed_ms = (
            stored.row[COLUMN[name]] for name in ("verdict", "reason_code", "reason", "elapsed_ms")
        )
        if stored.answer is None:
            reason = Reason(ReasonCode(code), text)
            answer = SystemAnswer(output=None, verdict=Verdict(verdict), reason=reason, elapsed_ms=elapsed_ms)
        else:
            answer = SystemAnswer(output=self._restored(stored.answer, case), elapsed_ms=elapsed_ms)
        if address.is_source:
            source = SourceAnswer()
            source.take(self._parts.oracle, self._seed, answer)
            self._sources[question] = source
        source_answer = self._sources.get(question)
        if source_answer is None:
            raise MedtestError("the answer to its source cannot be judged")
        finished = finish(self._parts.oracle, self._seed, source_answer, case, answer)
        return self._maker.judged_again(stored.row, address, self._task.ref, finished)

    def _made(self, address: Address) -> MadeCase:
        """Make the seed's case again; a crafted one is replaced by the unchanged image, because crafting moves nothing.

        Raises:
            MedtestError: It cannot be reconstructed.
        """
        if isinstance(self._parts.relations.get(address.relation), CraftedRelation):
            follow = FollowUp(image=self._seed.image, params={}, scale=0.0)
            return MadeCase(address=address, follow=follow, kind=self._seed.kind)
        case = self._parts.make(self._seed, address, self._task.system)
        if case.follow is None:
            raise MedtestError(f"{address.stem} cannot be made again: {case.reason.text}")
        return case

    def _restored(self, answer: bytes, case: MadeCase) -> Output:
        seed, follow = self._seed, case.follow
        image = seed.image if follow is None else follow.image
        return case.task.storage.restore(answer, seed, SystemInput(image=image, spec=seed.spec, classes=seed.classes))
