"""A unit in progress: cases are made, answers judged as they arrive, in any order, and recorded.

All kinds of systems use it: batches (:mod:`medtest.runner.units.execute`) and streams of calls
(:mod:`medtest.runner.units.asker`) pass each answer to :meth:`Share.take`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from medtest.core.cases import SOURCE, UNCHANGED, Address, Output, PreparedSeed, Reason, ReasonCode, Verdict
from medtest.core.errors import MedtestError
from medtest.preparation import seed_factors
from medtest.runner.pool.messages import SHARED, Begin, Message, Place, Row, TaskResult, UnitTask
from medtest.runner.records.answers import KeptAnswer
from medtest.runner.records.rows import COLUMN, FinishedCase, RowMaker
from medtest.runner.records.thumbnails import NAMED_BY
from medtest.runner.units.judging import SourceAnswer, finish, source_failed
from medtest.runner.units.made_case import MadeCase, SystemAnswer, describe
from medtest.runner.units.parts import Parts
from medtest.runner.units.searching.outcomes import QueryOutcome, outcome_of
from medtest.runner.units.searching.searcher import Searcher, Searches
from medtest.runner.units.showing import Thumbnails
from medtest.suite.plan import Unit
from medtest.systems.base import System

_MAX_ROWS = 256
_UNPREPARED = "the seed cannot be prepared: "


class Outbox:
    """Collector of rows from all threads that sends them periodically, so that pipes carry few messages.

    Args:
        send: Sends a message through the pipe.
        seconds: Longest time before rows are sent.
    """

    def __init__(self, send: Callable[[Message], None], seconds: float) -> None:
        self.send = send
        self._seconds = seconds
        self._rows: dict[int, list[Row]] = {}
        self._count = 0
        self._sent = time.monotonic()
        self._lock = threading.Lock()

    def begin(self, index: int, place: Place = (SHARED, SHARED)) -> None:
        """Tell the parent that something begins which may take long."""
        self.send(Begin(index, place))

    def add(self, index: int, row: Row) -> None:
        """Add one row of a unit."""
        with self._lock:
            self._rows.setdefault(index, []).append(row)
            self._count += 1

    def flush(self, *, now: bool = False) -> None:
        """Send rows that have waited long enough, or all."""
        with self._lock:
            waited = time.monotonic() - self._sent
            if self._rows and (now or waited >= self._seconds or self._count >= _MAX_ROWS):
                for index, rows in self._rows.items():
                    self.send(TaskResult(index, rows))
                self._rows, self._count = {}, 0
                self._sent = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Shared objects of all units of a worker.

    Attributes:
        parts: The suite's parts.
        systems: The opened systems, in the suite's order.
        maker: Makes rows.
        outbox: Receives them.
        searcher: Makes the queries of searches; None for a suite without any.
    """

    parts: Parts
    systems: Sequence[System]
    maker: RowMaker
    outbox: Outbox
    searcher: Searcher | None = None

    def open(self, task: UnitTask, *, hung: str = _UNPREPARED) -> OpenUnit | None:
        """Prepare a unit's seed; if that fails, record an ERROR for all its cases and return None.

        Args:
            task: The unit's task.
            hung: Prefix of the reason if the whole unit was given up.
        """
        self.outbox.begin(task.index)
        opened = OpenUnit(self, task, self.parts.unit(task.ref))
        given_up = task.given_up.get((SHARED, SHARED))
        if given_up is not None:
            reason = given_up._replace(text=f"{hung}{given_up.text}")
        else:
            try:
                opened.prepare()
            except Exception as error:  # noqa: BLE001 - a seed source may come from a plug-in, a file may have changed
                reason = Reason(ReasonCode.SEED_ERROR, f"{_UNPREPARED}{describe(error)}")
            else:
                return opened
        for system, todo in enumerate(task.todo):
            for case, address in enumerate(opened.unit.cases):
                if todo[case]:
                    finished = (
                        FinishedCase(verdict=Verdict.ERROR, reason=reason)
                        if address.is_source
                        else FinishedCase(verdict=Verdict.SKIP, reason=source_failed(reason))
                    )
                    opened.record(system, case, finished)
        return None


class OpenUnit:
    """Unit in progress.

    Args:
        recorder: Shared objects of the worker.
        task: The unit's task.
        unit: Its cases.

    Attributes:
        left: Systems that have not finished it.
    """

    def __init__(self, recorder: Recorder, task: UnitTask, unit: Unit) -> None:
        self.recorder, self.task, self.unit = recorder, task, unit
        self.seed: PreparedSeed
        self.left = len(recorder.systems)
        self.lock = threading.Lock()
        self._factors: Mapping[str, float | None] = {}
        self._source_sha256 = ""
        self._made: dict[int, MadeCase] = {}

    def prepare(self) -> None:
        """Load and prepare the seed.

        Raises:
            MedtestError: Its questions differ from those listed.
        """
        seed = self.recorder.parts.prepared(self.task.source, self.task.ref)
        factors = seed_factors(seed)
        items = tuple(ask.item for ask in seed.asks)
        if items != tuple(item for item in seed.ref.items if item):
            listed = ", ".join(seed.ref.items)
            raise MedtestError(f"its questions are {', '.join(items) or 'none'}; {listed} were listed")
        self.seed, self._factors, self._source_sha256 = seed, factors, seed.sha256
        self._thumbnails = Thumbnails(self.recorder.parts, seed)

    def made(self, number: int) -> MadeCase:
        """Return the case of one question, made once for all questions and systems."""
        with self.lock:
            if number not in self._made:
                self._made[number] = self.recorder.parts.make(self.seed, self.unit.cases[number])
            return self._made[number]

    def record(
        self, system: int, case: int, finished: FinishedCase, shown: tuple[MadeCase, Output | None] | None = None
    ) -> None:
        """Pass on the result of a case of one system, with thumbnails of what was shown and answered."""
        recorder, address = self.recorder, self.unit.cases[case]
        name = recorder.systems[system].record_name
        row = recorder.maker.row(name, address, self.task.ref, self._factors, self._source_sha256, finished)
        stored: tuple[KeptAnswer, ...] = () if finished.answer is None else (finished.answer,)
        if shown is not None:
            stored += self._thumbnails.of(*shown, {name: row[COLUMN[name]] for name in NAMED_BY})
        recorder.outbox.add(self.task.index, (system, case, row, stored))


@dataclass(slots=True, eq=False)
class Share:
    """Share of one system in a unit in progress.

    Attributes:
        open: The unit.
        system: The system's index.
        sources: The system's answers to the source image, by question.
        waiting: Cases with an answer whose source has none yet: number, case, answer, by question.
        left: Unrecorded cases.
        drawn: True if every call was passed to the system.
        under_way: Number of calls without an answer.
        searches: Searches of the unit; None without any.
        outcomes: Outcomes of cases on which searches depend.
    """

    open: OpenUnit
    system: int
    sources: dict[int, SourceAnswer] = field(default_factory=dict)
    waiting: dict[int, list[tuple[int, MadeCase, SystemAnswer]]] = field(default_factory=dict)
    left: set[int] = field(init=False)
    drawn: bool = False
    under_way: int = 0
    searches: Searches | None = None
    outcomes: dict[int, QueryOutcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        searcher = self.open.recorder.searcher
        self.searches = None if searcher is None else searcher.open(self.open.unit)
        self.left = {case for case, requested in enumerate(self.open.task.todo[self.system]) if requested}

    def take(self, case: int, case_made: MadeCase, answer: SystemAnswer, *, lost: bool = False) -> None:
        """Store an answer; it is judged and recorded once the system's answer to the source has arrived.

        Args:
            case: The case's index in the unit.
            case_made: The case that was shown to the system.
            answer: The system's answer.
            lost: For a source: True if the system hung or crashed on it.
        """
        question = case // self.open.unit.row
        source = self.sources.get(question)
        if case % self.open.unit.row == 0:
            source = SourceAnswer()
            source.take(self.open.recorder.parts.oracle, self.open.seed, answer, lost=lost)
            self.sources[question] = source
            self.record(case, case_made, answer, source)
            for earlier in self.waiting.pop(question, ()):
                self.record(*earlier, source)
        elif source is None:
            self.waiting.setdefault(question, []).append((case, case_made, answer))
        else:
            self.record(case, case_made, answer, source)

    def requests(self, number: int) -> bool:
        """Return True if a case of any question must be recorded."""
        return any(self.open.task.todo[self.system][number :: self.open.unit.row])

    def repeats(self, number: int) -> tuple[int, ...]:
        """Return the numbers of all repetitions of a case's prompt that this task asks for, its own among them.

        They are those of :attr:`medtest.systems.answering.asking.Asking.repeat`.
        """
        cases, todo = self.open.unit.cases, self.open.task.todo[self.system]
        return tuple(
            0 if case.is_source else case.repeat + 1
            for at, case in enumerate(cases)
            if (at in (0, number) or todo[at]) and self._prompt_of(case) == self._prompt_of(cases[number])
        )

    def _prompt_of(self, address: Address) -> tuple[str, int, int, int]:
        """Return the key that the cases of one prompt share: those of the source, or of one changed prompt."""
        if address.is_source or address.relation == UNCHANGED:
            return SOURCE, 0, 0, 0
        pictures = getattr(self.open.recorder.parts.relations.get(address.relation), "pictures", None)
        group = address.repeat // (pictures() if callable(pictures) else 1)
        return address.relation, address.severity, address.frame, group

    def questions(self) -> range:
        """Return the numbers of all questions."""
        return range(len(self.open.unit.cases) // self.open.unit.row)

    def made(self, number: int) -> MadeCase:
        """Return the case of one question: what this system is shown of a search, else what all systems are."""
        if self.searches is not None and number in self.searches.cases:
            return self.searches.cases[number]
        return self.open.made(number)

    def record(self, case: int, case_made: MadeCase, answer: SystemAnswer, source: SourceAnswer) -> None:
        """Judge and record a case, unless that is done, or it was only answered for other cases."""
        searcher = self.open.recorder.searcher
        is_watched = searcher is not None and searcher.watches(self.open.unit.cases[case])
        if case not in self.left and not (is_watched and case not in self.outcomes):
            return
        # All questions share one image, which was made under the first question's address.
        address = self.open.unit.cases[case]
        own_case = case_made if case_made.address == address else replace(case_made, address=address)
        parts = self.open.recorder.parts
        finished = finish(parts.oracle, self.open.seed, source, own_case, answer)
        if is_watched:
            self.outcomes[case] = outcome_of(parts.oracle, finished.verdict, finished.reason.code, finished.scores)
        if case not in self.left:
            return
        self.left.discard(case)
        stored = parts.keep(self.open.seed, answer.output)
        finished = finished if stored is None else replace(finished, answer=stored)
        self.open.record(self.system, case, finished, (own_case, answer.output or answer.unread))
