"""State of one call of :func:`make_followups`: tasks, existing follow-ups, results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from medtest.core.cases import Address
from medtest.core.errors import Interrupted
from medtest.runner.folder import utc_now
from medtest.runner.followups.entry import Entry
from medtest.runner.followups.recipe import SuiteKeys
from medtest.runner.followups.store import FollowUpStore, names_of
from medtest.runner.followups.worker import MakeTask, UnitMade
from medtest.runner.pool.dispatch import Dispatcher
from medtest.runner.pool.layout import Layout, usable_cores
from medtest.runner.pool.messages import Job
from medtest.runner.pool.workplace import Workplace
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.replaying.crafted_runs import crafted_of, is_in_runs, read_from_runs
from medtest.runner.reporting.outcome import Limits
from medtest.runner.units.parts import Parts
from medtest.suite.model import Invocation, Suite
from medtest.suite.plan import Unit

_SHOWN_ERRORS = 100
_OPEN_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class StoreReport:
    """Result of one call of :func:`medtest.runner.followups.make_followups`.

    Attributes:
        suite: The suite's key, for :meth:`medtest.runner.followups.FollowUpStore.entries`.
        folder: The store's folder.
        sources: Number of chosen seeds.
        made: Follow-ups made by this call.
        reused: Follow-ups that already existed.
        skipped: Cases without a follow-up (no room), old and new.
        errors: Cases that failed; the next call tries them again.
        problems: (shown address, error) of the first of them.
        left_out: Relations that need the system under test and are not stored.
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


@dataclass
class Making:
    """One call of :func:`make_followups`.

    Attributes:
        suite: The suite.
        invocation: Selection of follow-ups, and location of the data.
        store: The store, opened for writing.
        workers: Processes; see :func:`medtest.runner.followups.make_followups`.
        progress: Called with the number of finished follow-ups and their total.
        counts: Number of follow-ups by outcome so far.
        problems: (shown address, error) of the first that could not be made.
    """

    suite: Suite
    invocation: Invocation
    store: FollowUpStore
    workers: int | None
    progress: Callable[[int, int], None] | None
    counts: dict[str, int] = field(
        default_factory=lambda: {"made": 0, "reused": 0, "skipped": 0, "errors": 0, "bytes": 0}
    )
    problems: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        suite, invocation = self.suite, self.invocation
        parts = Parts(suite, invocation.data, invocation.batch_size)
        crafted = self._requested_crafted(parts)
        read_from_runs(suite, invocation, parts, crafted)
        self._runs = parts.crafted
        self._left_out = tuple(sorted(crafted_of(parts) - crafted))
        owned = parts.needed_refs(limit=invocation.limit, only=invocation.only)
        self._owners = [number for number, _ in owned]
        self._plan = parts.plan(owned)
        names = ShownNames.of(suite.privacy, invocation.home)
        self._names = names
        self._recipe = SuiteKeys(suite, parts.relations, names)
        self.key = self._recipe.suite_key(suite, parts.sources)
        self.sources = self.total = self._started = 0
        for unit in self._plan.units():  # counted and not stored: a plan may hold a hundred thousand seeds
            cases = len(self._chosen_cases(unit))
            self.sources += cases > 0
            self.total += cases
        workers = invocation.workers if self.workers is None else self.workers
        self._processes = usable_cores() if workers is None else workers

    def _requested_crafted(self, parts: Parts) -> frozenset[str]:
        """Return the crafted relations to store: those named by ``only=``, or without it those that a run has."""
        crafted, only = crafted_of(parts), self.invocation.only.relations
        if only:
            return crafted & only
        return frozenset(name for name in crafted if is_in_runs(self.suite, self.invocation, parts, name))

    def run(self) -> None:
        """Make the missing follow-ups."""
        self.store.add_suite(self.key, name=self.suite.name, version=self.suite.version, added=utc_now())
        try:
            self._make(self._tasks())
        except KeyboardInterrupt:
            finished = self.counts["made"] + self.counts["reused"]
            raise Interrupted(
                f"Interrupted: {finished:,} of {self.total:,} follow-ups are kept; run the same command to continue."
            ) from None
        self._report_progress()

    def _make(self, tasks: Iterator[MakeTask]) -> None:
        first = next(tasks, None)
        if first is None:
            return
        job = Job.of(
            self.suite,
            self.invocation,
            hash_key=self._names.key,
            device="cpu",
            threads=1,
            store=str(self.store.folder.resolve()),
            crafted=self._runs,
            session="medtest.runner.followups.worker:MakeSession",
        )
        dispatcher = Dispatcher(
            job=job,
            tasks=itertools.chain([first], tasks),
            batch_seconds=self.invocation.batch_seconds,
            limits=Limits(open_seconds=_OPEN_SECONDS),
            result=self._take,
            renew=lambda task: task,
            layout=lambda _device: Layout(workers=max(1, min(self._processes, self.sources)), threads=1),
            workplace=Workplace(in_process=not self._processes),
            loads="the relations",
        )
        dispatcher.run()
        self._started = dispatcher.started if self._processes else 0

    def report(self, seconds: float) -> StoreReport:
        """Return a summary."""
        return StoreReport(
            suite=self.key,
            folder=self.store.folder,
            sources=self.sources,
            problems=tuple(self.problems),
            left_out=self._left_out,
            seconds=seconds,
            workers=self._started,
            **self.counts,
        )

    def _chosen_cases(self, unit: Unit) -> tuple[tuple[int, Address], ...]:
        first = unit.index * self._plan.cases_per_seed
        only = self.invocation.only
        if self._names.key is not None and only.seeds:
            shown_id = self._names.seed_id(unit.ref.dataset, unit.ref.seed_id)
            if shown_id in only.seeds:
                only = replace(only, seeds=only.seeds | {unit.ref.seed_id})
        return tuple(
            (first + number, unit.cases[number])
            for number in unit.chosen(limit=self.invocation.limit, only=only)
            if not unit.cases[number].is_source and unit.cases[number].relation not in self._left_out
        )

    def _tasks(self) -> Iterator[MakeTask]:
        """Yield the remaining tasks; a seed with all its follow-ups in the store is not even loaded."""
        for unit in self._plan.units():
            cases = self._chosen_cases(unit)
            if not cases:
                continue
            stored = self.store.index.members(self.key, cases[0][0], cases[-1][0])
            if all(place in stored and self._is_whole(stored[place]) for place, _ in cases):
                entries = [stored[place] for place, _ in cases]
                self._count(reused=sum(not e.skipped for e in entries), skipped=sum(bool(e.skipped) for e in entries))
                continue
            yield MakeTask(index=unit.index, source=self._owners[unit.index], ref=unit.ref, cases=cases)

    def _is_whole(self, entry: Entry) -> bool:
        return all(self.store.whole_size(*name) is not None for name in names_of(entry))

    def _take(self, unit: UnitMade, _index: int) -> None:
        if unit.entries:
            self.store.index.add(unit.source_key, unit.entries, unit.sizes, self.key)
        self.problems += unit.errors[: max(0, _SHOWN_ERRORS - len(self.problems))]
        self._count(**unit.counts, errors=len(unit.errors))

    def _count(self, **numbers: int) -> None:
        for name, number in numbers.items():
            self.counts[name] += number
        self._report_progress()

    def _report_progress(self) -> None:
        if self.progress is not None:
            finished = sum(self.counts[name] for name in ("made", "reused", "skipped", "errors"))
            self.progress(min(finished, self.total), self.total)
