"""Makes a suite's follow-ups into a store: over all cores, going on where an earlier call stopped."""

from __future__ import annotations

import itertools
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from medtest.cases import SERIES_KINDS, Address
from medtest.errors import Interrupted, MedtestError, Mistake, UserMistakes
from medtest.followups.entry import Entry
from medtest.followups.guard import StoreLock
from medtest.followups.recipe import Recipe
from medtest.followups.store import FOLDER, FollowUpStore, names_of
from medtest.followups.worker import Busy, MakeJob, MakeSession, MakeTask, Started, UnitMade
from medtest.runner.folder import utc_now
from medtest.runner.layout import usable_cores
from medtest.runner.messages import Failed, Gone
from medtest.runner.parts import Parts
from medtest.runner.pool import Worker, end_all
from medtest.runner.privacy import Names, load_key
from medtest.suite.model import Invocation, Suite
from medtest.suite.plan import Plan, Unit, is_chosen

_BATCH = 8
_TICK = 0.2
_OPEN_SECONDS = 300.0
_CRASHES = 2
"""How often a case may take its worker down before it counts as an error."""
_STARTS = 3
_SHOWN_ERRORS = 100


@dataclass(frozen=True, kw_only=True)
class StoreReport:
    """What became of one call of :func:`make_followups`.

    Attributes:
        suite: The suite's key, for :meth:`FollowUpStore.entries`.
        folder: The store's folder.
        sources: Seeds that were chosen.
        made: Follow-ups made by this call.
        reused: Follow-ups that were there.
        skipped: Cases without a follow-up (no room), old and new.
        errors: Cases that could not be made; the next call tries them again.
        problems: (address as shown, what broke) of the first of them.
        left_out: Relations that need the system under test and are not kept.
        bytes: Bytes of pictures written.
        seconds: Wall time.
        workers: Processes.
    """

    suite: str
    folder: Path
    sources: int
    made: int
    reused: int
    skipped: int
    errors: int
    problems: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    bytes: int
    seconds: float
    workers: int


def make_followups(
    suite: Suite,
    invocation: Invocation,
    folder: Path | None = None,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StoreReport:
    """Make the chosen follow-ups of a suite and keep them, with their sources and expected masks.

    What is in the store already is not made again, whichever suite it was made for. Every picture is on its place
    before the index names it, so that a killed process leaves a store that holds less and never one that holds halves.
    The bytes do not depend on the order, on the number of workers, or on what else is in the store.

    Args:
        suite: The suite; its systems do not matter.
        invocation: ``data``, ``home``, ``limit``, ``only``, ``workers`` and ``batch_seconds`` (the longest a case may
            take) count.
        folder: The store's folder; ``followups/`` under ``invocation.home`` where it is None.
        workers: Processes; as many as there are cores where neither this nor ``invocation.workers`` is given. 0 makes
            them in this process: quicker for a few, but a relation that hangs or crashes is not survived.
        progress: Called with how many follow-ups are done, and how many there are to do.

    Returns:
        What was done.

    Raises:
        UserMistakes: The suite's privacy forbids keeping images, or its seeds have mistakes.
        OutputProblem: The folder cannot be written, the disk is full.
        Interrupted: Ctrl-C; what was finished is kept.
    """
    check_privacy(suite)
    began = time.monotonic()
    target = (invocation.home / FOLDER) if folder is None else Path(folder)
    store = FollowUpStore.open(target, create=True)
    try:
        with StoreLock(target).shared():
            making = _Making(suite, invocation, store, workers=workers, progress=progress)
            making.run()
        return making.report(time.monotonic() - began)
    finally:
        store.close()


def check_privacy(suite: Suite) -> None:
    """Check that a suite allows its images to be kept.

    Raises:
        UserMistakes: It has ``privacy: {images: none}``, or is a series, whose images a store does not hold.
    """
    if suite.kind in SERIES_KINDS:
        raise UserMistakes(
            [
                Mistake(
                    where="suite",
                    key="seeds",
                    found=f"seeds that expect a {suite.kind}",
                    allowed="seeds that expect a mask",
                    fix="Follow-ups of series are not kept; medtest export writes them as files.",
                )
            ]
        )
    if suite.privacy.images == "none":
        raise UserMistakes(
            [
                Mistake(
                    where="suite",
                    key="privacy.images",
                    found="none",
                    allowed="samples",
                    fix="A store of follow-ups holds every image of the suite, which its privacy forbids.",
                )
            ]
        )


class _MakeWorker(Worker):
    """A worker that makes follow-ups and knows no system."""

    boot: ClassVar[str] = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from medtest.followups.worker import main; main()"
    )


@dataclass
class _Making:
    """One call of :func:`make_followups`."""

    suite: Suite
    invocation: Invocation
    store: FollowUpStore
    workers: int | None
    progress: Callable[[int, int], None] | None
    counts: dict[str, int] = field(
        default_factory=lambda: {"made": 0, "reused": 0, "skipped": 0, "errors": 0, "bytes": 0, "done": 0}
    )
    problems: list[tuple[str, str]] = field(default_factory=list)
    started: int = 0

    def __post_init__(self) -> None:
        suite, invocation = self.suite, self.invocation
        parts = Parts(suite, invocation.data, _BATCH)
        self._left_out = tuple(name for name, relation in parts.relations.items() if type(relation).needs_gradients)
        owned = [(number, ref) for number, source in enumerate(parts.sources) for ref in source.refs()]
        self._owners = [number for number, _ in owned]
        self._plan = Plan([ref for _, ref in owned], parts.relations, _BATCH)
        names = Names(load_key(invocation.home) if suite.privacy.seed_ids == "hashed" else None)
        self._names = names
        self._recipe = Recipe(suite, parts.relations, names)
        self.key = self._recipe.suite_key(suite, parts.sources)
        self._job = MakeJob(
            suite=suite,
            data=None if invocation.data is None else str(invocation.data),
            folder=str(self.store.folder.resolve()),
            hash_key=names.key,
            hide=_hidden(invocation),
        )
        self.sources = self.total = 0
        for unit in self._plan.units():  # counted and not kept: a plan may hold a hundred thousand seeds
            cases = len(self._chosen(unit))
            self.sources += cases > 0
            self.total += cases
        self._pool = _Pool(
            job=self._job,
            tasks=self._tasks(),
            units=self.sources,
            workers=self._processes(),
            seconds=invocation.batch_seconds,
            take=self._take,
        )

    def _processes(self) -> int:
        given = self.invocation.workers if self.workers is None else self.workers
        return usable_cores() if given is None else given

    def run(self) -> None:
        """Make what is missing."""
        self.store.add_suite(self.key, name=self.suite.name, version=self.suite.version, added=utc_now())
        try:
            self._pool.run()
        except KeyboardInterrupt:
            done = self.counts["made"] + self.counts["reused"]
            raise Interrupted(
                f"Interrupted: {done:,} of {self.total:,} follow-ups are kept; the same command goes on from there."
            ) from None
        self._tell()

    def report(self, seconds: float) -> StoreReport:
        """Return what was done."""
        counts = self.counts
        return StoreReport(
            suite=self.key,
            folder=self.store.folder,
            sources=self.sources,
            made=counts["made"],
            reused=counts["reused"],
            skipped=counts["skipped"],
            errors=counts["errors"],
            problems=tuple(self.problems),
            left_out=self._left_out,
            bytes=counts["bytes"],
            seconds=seconds,
            workers=self._pool.started,
        )

    def _chosen(self, unit: Unit) -> tuple[tuple[int, Address], ...]:
        first = unit.index * self._plan.cases_per_seed
        only = self.invocation.only
        if self._names.key is not None and only.seeds:
            shown = self._names.seed_id(unit.ref.dataset, unit.ref.seed_id)
            if shown in only.seeds:
                only = replace(only, seeds=only.seeds | {unit.ref.seed_id})
        return tuple(
            (first + number, case)
            for number, case in enumerate(unit.cases)
            if not case.is_source
            and case.relation not in self._left_out
            and is_chosen(case, unit.position, limit=self.invocation.limit, only=only)
        )

    def _tasks(self) -> Iterator[MakeTask]:
        """Yield what is to do; a seed whose follow-ups are all there is not even loaded."""
        for unit in self._plan.units():
            cases = self._chosen(unit)
            if not cases:
                continue
            known = self.store.index.members(self.key, cases[0][0], cases[-1][0])
            if all(place in known and self._is_whole(known[place]) for place, _ in cases):
                there = [known[place] for place, _ in cases]
                self._count(reused=sum(not e.skipped for e in there), skipped=sum(bool(e.skipped) for e in there))
                continue
            yield MakeTask(index=unit.index, source=self._owners[unit.index], ref=unit.ref, cases=cases)

    def _is_whole(self, entry: Entry) -> bool:
        files, index = self.store.files, self.store.index
        for kind, sha256 in names_of(entry):
            size = files.size(kind, sha256)
            if size is None or size != index.size(kind, sha256):
                return False
        return True

    def _take(self, unit: UnitMade) -> None:
        if unit.entries:
            self.store.index.add(unit.source_key, unit.entries, unit.sizes, self.key)
        self.problems += unit.errors[: max(0, _SHOWN_ERRORS - len(self.problems))]
        self._count(
            made=unit.made, reused=unit.reused, skipped=unit.skipped, bytes=unit.written, errors=len(unit.errors)
        )

    def _count(self, **more: int) -> None:
        for name, number in more.items():
            self.counts[name] += number
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            done = sum(self.counts[name] for name in ("made", "reused", "skipped", "errors"))
            self.progress(min(done, self.total), self.total)


def _hidden(invocation: Invocation) -> tuple[tuple[str, str], ...]:
    hide = [(str(invocation.home.resolve()), "…"), (str(Path.home()), "~")]
    if invocation.data is not None:
        hide += [(str(invocation.data), "…"), (str(invocation.data.resolve()), "…")]
    return tuple(hide)


class _Pool:
    """Hands units to worker processes; one that hangs is killed, one that dies is replaced.

    Args:
        job: What every worker is told first.
        tasks: The tasks, made on demand.
        units: Most tasks there can be.
        workers: Processes.
        seconds: The longest that preparing a seed or making one follow-up may take.
        take: Called with every finished unit.
    """

    def __init__(
        self,
        *,
        job: MakeJob,
        tasks: Iterator[MakeTask],
        units: int,
        workers: int,
        seconds: float,
        take: Callable[[UnitMade], None],
    ) -> None:
        self._job = job
        self._tasks = tasks
        self._again: deque[MakeTask] = deque()
        self._wanted = min(workers, units)
        self._seconds = seconds
        self._take_unit = take
        self._inbox: queue.SimpleQueue[tuple[Worker, Any]] = queue.SimpleQueue()
        self._workers: list[Worker] = []
        self._crashes: dict[tuple[int, int], int] = {}
        self._bad_starts = 0
        self.started = 0

    def run(self) -> None:
        """Run every task.

        Raises:
            MedtestError: A worker could not start, or the store not be written.
        """
        first = next(self._tasks, None)
        if first is None:
            return
        self._again.append(first)
        if not self._wanted:
            self._run_here()
            return
        try:
            for _ in range(self._wanted):
                self._start()
            while self._workers:
                self._step()
        finally:
            for worker in self._workers:
                worker.kill()
            end_all(self._workers, patience=0.0)

    def _run_here(self) -> None:
        """Run every task in this process."""
        session = MakeSession(self._job, self._take_here)
        if session.open():
            try:
                for task in itertools.chain(self._again, self._tasks):
                    session.run(task)
            finally:
                session.store.close()

    def _take_here(self, message: Any) -> None:
        if isinstance(message, Failed):
            raise message.error
        if isinstance(message, UnitMade):
            self._take_unit(message)

    def _start(self) -> None:
        worker = _MakeWorker(self._job, self._inbox)
        worker.deadline = time.monotonic() + _OPEN_SECONDS
        self._workers.append(worker)
        self.started = max(self.started, len(self._workers))

    def _step(self) -> None:
        try:
            worker, message = self._inbox.get(timeout=_TICK)
        except queue.Empty:
            pass
        else:
            self._handle(worker, message)
        now = time.monotonic()
        for late in [w for w in self._workers if w.deadline is not None and now > w.deadline]:
            late.deadline = None
            late.doomed = "hung"
            late.kill()

    def _handle(self, worker: Worker, message: Any) -> None:
        match message:
            case Started():
                worker.ready = True
                self._bad_starts = 0
                self._next(worker)
            case Busy(place=place):
                worker.place = (0, place)
                worker.deadline = None if worker.doomed else time.monotonic() + self._seconds
            case UnitMade():
                worker.task = None
                self._take_unit(message)
                if not worker.doomed:
                    self._next(worker)
            case Failed(error=error):
                raise error
            case Gone():
                self._gone(worker)

    def _next(self, worker: Worker) -> None:
        task = self._again.popleft() if self._again else next(self._tasks, None)
        if task is None:
            worker.deadline = time.monotonic() + _TICK * 25
            worker.retire()
            return
        worker.place = (0, -1)
        worker.deadline = time.monotonic() + self._seconds
        worker.give(task)

    def _gone(self, worker: Worker) -> None:
        self._workers.remove(worker)
        how = worker.death()
        words = worker.last_words()
        worker.end()
        if worker.retired:
            return
        task: MakeTask | None = worker.task
        if task is None:
            self._bad_starts += 1
            if self._bad_starts >= _STARTS:
                raise MedtestError(f"A worker could not start: it {how}. {words}".strip())
        else:
            self._again.append(self._blamed(worker, task))
        self._start()

    def _blamed(self, worker: Worker, task: MakeTask) -> MakeTask:
        """Return a lost task again; a case that hung, or took workers down twice, is given up."""
        place = worker.place[1]
        self._crashes[task.index, place] = self._crashes.get((task.index, place), 0) + 1
        if worker.doomed or self._crashes[task.index, place] >= _CRASHES:
            return replace(task, given_up=task.given_up | {place})
        return task
