"""One call of :func:`medtest.followups.make_followups`: what is to do, what is there already, what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from medtest.cases import Address
from medtest.errors import Interrupted
from medtest.followups.entry import Entry
from medtest.followups.pool import MakePool
from medtest.followups.recipe import SuiteKeys
from medtest.followups.report import StoreReport
from medtest.followups.store import FollowUpStore, names_of
from medtest.followups.worker import MakeJob, MakeTask, UnitMade
from medtest.runner.folder import utc_now
from medtest.runner.pool.layout import usable_cores
from medtest.runner.privacy import ShownNames, load_key
from medtest.runner.units.parts import Parts
from medtest.suite.model import Invocation, Suite
from medtest.suite.plan import Plan, Unit, is_chosen

_BATCH = 8
_SHOWN_ERRORS = 100


@dataclass
class Making:
    """One call.

    Attributes:
        suite: The suite.
        invocation: Which of its follow-ups are chosen, and where its data are.
        store: The store, opened for writing.
        workers: Processes; see :func:`medtest.followups.make_followups`.
        progress: Called with how many follow-ups are done, and how many there are to do.
        counts: What became of them so far.
        problems: (address as shown, what broke) of the first that could not be made.
    """

    suite: Suite
    invocation: Invocation
    store: FollowUpStore
    workers: int | None
    progress: Callable[[int, int], None] | None
    counts: dict[str, int] = field(
        default_factory=lambda: {"made": 0, "reused": 0, "skipped": 0, "errors": 0, "bytes": 0, "done": 0}
    )
    problems: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        suite, invocation = self.suite, self.invocation
        parts = Parts(suite, invocation.data, _BATCH)
        self._left_out = tuple(name for name, relation in parts.relations.items() if type(relation).needs_gradients)
        owned = [(number, ref) for number, source in enumerate(parts.sources) for ref in source.refs()]
        self._owners = [number for number, _ in owned]
        self._plan = Plan([ref for _, ref in owned], parts.relations, _BATCH)
        names = ShownNames(load_key(invocation.home) if suite.privacy.seed_ids == "hashed" else None)
        self._names = names
        self._recipe = SuiteKeys(suite, parts.relations, names)
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
        self._pool = MakePool(
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
