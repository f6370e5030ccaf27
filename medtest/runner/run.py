"""Runs a suite: plan → batches → records, one folder for each system."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from medtest.cases import SeedRef
from medtest.errors import MedtestError, Mistake, UserMistakes
from medtest.runner import finish
from medtest.runner.dispatch import Callbacks, Dispatcher
from medtest.runner.folder import FolderLock, system_folder
from medtest.runner.layout import Layout, choose_layout, device_is_certain
from medtest.runner.ledger import Ledger, Places, seeds_twice
from medtest.runner.messages import Job, StripTask, Task, UnitTask
from medtest.runner.outcome import Count, Limits, Progress, RunOutcome, SystemOutcome
from medtest.runner.privacy import Names, key_fingerprint, load_key
from medtest.runner.progress import choose_progress
from medtest.runner.rows import records_schema, strata_of
from medtest.runner.shards import Code
from medtest.suite.digest import Digest, digest_of, run_digest
from medtest.suite.model import Invocation, Selection, Suite
from medtest.suite.plan import Plan, is_chosen
from medtest.systems.base import System

_LISTED = 50
"""At most this many unusable files are named in what the user reads."""
_PROGRESS_SECONDS = 0.1


def run_suite(
    suite: Suite,
    invocation: Invocation,
    *,
    progress: Progress | None = None,
    limits: Limits | None = None,
    hold: ExitStack | None = None,
) -> RunOutcome:
    """Run whatever of a suite is chosen and not finished yet, for all its systems at once.

    Args:
        suite: A checked suite.
        invocation: How this call runs it.
        progress: Who wants to know how far it is; by default a line on a terminal, nothing elsewhere.
        limits: Bounds that tests tighten.
        hold: Takes the locks of the folders, so that a caller who writes tables and a report into them keeps them
            until it closes this stack; by default they are given back at the end of the run.

    Returns:
        What became of each system. Interrupted runs return too, with ``interrupted`` set and their shards whole.

    Raises:
        UserMistakes: Seeds or systems cannot be used.
        FolderInUse: Another process runs this suite on this system.
        OutputProblem: The folder cannot be written; what was finished is kept.
        MedtestError: The systems cannot be loaded.
    """
    started = time.monotonic()
    bounds = limits or Limits()
    prepared = prepare_run(suite, invocation)
    shown = progress if progress is not None else choose_progress(quiet=invocation.quiet)
    try:
        with ExitStack() if hold is None else nullcontext(hold) as stack:
            run = _Run(prepared, invocation, bounds, shown)
            run.lock(stack)
            run.open()
            run.execute()
            return run.outcome(time.monotonic() - started)
    finally:
        shown.close()


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """A suite with everything that the parent process knows of it; no system is loaded.

    Attributes:
        suite: The suite.
        plan: All its cases.
        owners: Which seed source each seed comes from.
        names: How ids are shown.
        systems: The systems, in order, not opened.
        digests: Theirs.
        folders: Theirs.
        schema: What records look like.
        strata: Columns that stratify tables.
        notices: Lines for the user.
    """

    suite: Suite
    plan: Plan
    owners: NDArray[np.int32]
    names: Names
    systems: tuple[System, ...]
    digests: tuple[Digest, ...]
    folders: tuple[Path, ...]
    schema: pa.Schema
    strata: tuple[str, ...]
    notices: tuple[str, ...]


def prepare_run(suite: Suite, invocation: Invocation) -> PreparedRun:
    """List seeds, check systems, and find the folders, loading nothing heavy and writing nothing.

    Raises:
        UserMistakes: Seeds or systems cannot be used.
    """
    sources = suite.build_seeds(invocation.data)
    refs: list[SeedRef] = []
    owners: list[int] = []
    notices: list[str] = []
    for number, source in enumerate(sources):
        found = source.refs()
        refs += found
        owners += [number] * len(found)
        notices += source.notices()
        left_out = source.problems()
        if left_out:
            count = len(left_out)
            files = "file" if count == 1 else "files"
            notices.append(f"{count} {files} of {source.dataset} left out as unusable seeds.")
            if suite.privacy.seed_ids != "hashed":  # names of files may be names of patients
                notices += [f"Left out: {problem.file} {problem.reason}" for problem in left_out[:_LISTED]]
                if count > _LISTED:
                    notices.append(f"… and {count - _LISTED} more; on_bad_seed: stop names them all.")
    _check_seeds(refs)
    relations = suite.build_relations()
    systems = suite.build_systems()
    mistakes = [mistake for system in systems.values() for mistake in system.check()]
    if mistakes:
        raise UserMistakes(mistakes)
    key = load_key(invocation.home) if suite.privacy.seed_ids == "hashed" else None
    digests = tuple(
        _with_privacy(run_digest(suite, name, seeds=sources, relations=relations, system=system), key)
        for name, system in systems.items()
    )
    folders = tuple(
        system_folder(invocation.home, suite.name, system.record_name, digest.value)
        for system, digest in zip(systems.values(), digests, strict=True)
    )
    _check_folders(list(systems), folders)
    strata = strata_of(refs)
    return PreparedRun(
        suite=suite,
        plan=Plan(refs, relations, invocation.batch_size),
        owners=np.array(owners, dtype=np.int32),
        names=Names(key),
        systems=tuple(systems.values()),
        digests=digests,
        folders=folders,
        schema=records_schema(suite.build_oracle(), strata),
        strata=strata,
        notices=tuple(notices),
    )


def _check_seeds(refs: Sequence[SeedRef]) -> None:
    if not refs:
        raise UserMistakes([Mistake(where="suite", key="seeds", found="no seed at all", allowed="at least one")])
    twice = seeds_twice(refs)
    if twice:
        raise UserMistakes(
            Mistake(where="suite", key="seeds", found=f"{dataset}/{seed_id} twice", fix="Give each source another id.")
            for dataset, seed_id in twice[:20]
        )


def _check_folders(names: Sequence[str], folders: Sequence[Path]) -> None:
    seen: dict[Path, str] = {}
    for name, folder in zip(names, folders, strict=True):
        if folder in seen:
            raise UserMistakes(
                [
                    Mistake(
                        where="suite",
                        key=f"systems.{name}",
                        found=f"the same system as systems.{seen[folder]}",
                        fix="Take one of them out.",
                    )
                ]
            )
        seen[folder] = name


def _with_privacy(digest: Digest, key: bytes | None) -> Digest:
    """Give hashed records a folder of their own: one that holds plain ids is never gone on with under hashed ones."""
    if key is None:
        return digest
    covers = {**digest.covers, "seed_ids": f"hashed with key {key_fingerprint(key)}"}
    return Digest(value=digest_of(covers), covers=covers)


@dataclass
class _Run:
    """One call of :func:`run_suite`."""

    prepared: PreparedRun
    invocation: Invocation
    limits: Limits
    progress: Progress
    ledgers: list[Ledger] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    interrupted: bool = False
    device: str = ""
    workers: int = 0
    layout: Layout | None = None

    def __post_init__(self) -> None:
        self._dispatcher: Dispatcher | None = None
        self._told = 0.0
        self._finisher: finish.Finisher | None = None
        self._finished: list[SystemOutcome] = []
        self.notices = [*self.prepared.notices, *(s.notice() for s in self.prepared.systems if s.notice())]

    def lock(self, stack: ExitStack) -> None:
        """Lock every folder, in one order for all processes, and move old ones aside if asked."""
        for folder in sorted(self.prepared.folders):
            lock = FolderLock(folder)
            lock.acquire()
            stack.callback(lock.release)
            if self.invocation.fresh:
                moved = lock.move_aside()
                if moved is not None:
                    self.notices.append(f"Earlier results were moved to {moved.parent.name}/{moved.name}.")

    def open(self) -> None:
        """Read what earlier runs left."""
        prepared = self.prepared
        places = Places(prepared.plan, prepared.names)
        chosen = _chosen(prepared.plan, self.invocation, prepared.names)
        for system, digest, folder in zip(prepared.systems, prepared.digests, prepared.folders, strict=True):
            ledger = Ledger(
                folder=folder,
                schema=prepared.schema,
                digest=digest.value,
                primary=prepared.suite.oracle.primary,
                places=places,
                chosen=chosen,
                limits=self.limits,
            )
            self.ledgers.append(ledger)
            for problem in ledger.set_aside:
                self.notices.append(f"{system.record_name}: {problem}; it was set aside, its cases are run again.")
            if ledger.reused:
                self.notices.append(
                    f"{system.record_name}: {ledger.reused} finished cases of {ledger.reused_from} are used again."
                )
        self._finisher = finish.Finisher(
            prepared=prepared, invocation=self.invocation, ledgers=self.ledgers, places=places, limits=self.limits
        )

    def execute(self) -> None:
        """Run what is to do, and finish the folders."""
        needed = any(type(system).needs_device for system in self.prepared.systems)
        device = device_is_certain(self.invocation.device, needed=needed)
        self._dispatcher = Dispatcher(
            job=self._job(device or "auto"),
            tasks=self._unit_tasks(),
            batch_seconds=self.invocation.batch_seconds,
            limits=self.limits,
            callbacks=Callbacks(
                rows=self._rows, renew=self._renew, tick=self._tick, layout=self._choose, more=self._more
            ),
        )
        try:
            with _stop_gently(self._dispatcher):
                if any(ledger.to_do for ledger in self.ledgers):
                    self._dispatcher.run()
                else:
                    self._dispatcher.run_later_tasks()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            for ledger in self.ledgers:
                ledger.flush()
        self.device = self._dispatcher.device
        self.workers = self._dispatcher.started
        self.notices += self._dispatcher.notices

    def outcome(self, seconds: float) -> RunOutcome:
        """Write the last files and say what became of everything."""
        finisher = self._finisher
        if finisher is None:
            raise MedtestError("A run was finished before it was opened.")
        layout = self.layout or Layout(workers=0, threads=0)
        if not self.interrupted:
            finisher.close(device=self.device, layout=layout)
        return RunOutcome(
            systems=finisher.outcomes(),
            interrupted=self.interrupted,
            device=self.device,
            workers=self.workers,
            threads=layout.threads,
            seconds=seconds,
            running_seconds=0.0 if self._dispatcher is None else self._dispatcher.running_seconds,
            notices=tuple(self.notices),
        )

    def _job(self, device: str) -> Job:
        home, data = self.invocation.home.resolve(), self.invocation.data
        hide = [(str(home), "…"), (str(Path.home()), "~")]
        if data is not None:
            hide += [(str(data), "…"), (str(data.resolve()), "…")]
        threads = self.invocation.threads or 1
        return Job(
            suite=self.prepared.suite,
            data=None if data is None else str(data),
            batch_size=self.invocation.batch_size,
            device=device,
            threads=threads,
            hash_key=self.prepared.names.key,
            strata=self.prepared.strata,
            send_seconds=self.limits.send_seconds,
            hide=tuple(hide),
            kept=self.invocation.kept,
        )

    def _choose(self, device: str) -> Layout:
        units = int(np.any([ledger.units_to_do() for ledger in self.ledgers], axis=0).sum())
        self.layout = choose_layout(
            device=device, units=units, workers=self.invocation.workers, threads=self.invocation.threads
        )
        return self.layout

    def _unit_tasks(self) -> Iterator[Task]:
        for index in range(len(self.prepared.plan.refs)):
            task = self._task(index, {})
            if task is not None:
                yield task

    def _task(self, index: int, given_up: Mapping[tuple[int, int], str]) -> UnitTask | None:
        todo = tuple(ledger.todo(index) for ledger in self.ledgers)
        if not any(any(part) for part in todo):
            return None
        owner = int(self.prepared.owners[index])
        return UnitTask(index, owner, self.prepared.plan.refs[index], todo, dict(given_up))

    def _renew(self, task: UnitTask) -> UnitTask | None:
        return self._task(task.index, task.given_up)

    def _rows(self, rows: list[tuple[int, int, tuple[Any, ...]]], unit: int) -> None:
        for system, case, row in rows:
            self.ledgers[system].take(unit, case, row)

    def _tick(self) -> None:
        for ledger in self.ledgers:
            ledger.tick()
        now = time.monotonic()
        if now - self._told >= _PROGRESS_SECONDS:
            self._told = now
            self.progress.update(self._count())

    def _count(self) -> Count:
        counts = np.sum([ledger.chosen_counts() for ledger in self.ledgers], axis=0)
        total = sum(ledger.chosen for ledger in self.ledgers)
        done = total - sum(ledger.left for ledger in self.ledgers)
        executed = sum(ledger.executed for ledger in self.ledgers)
        return Count(
            done=done,
            total=total,
            reused=done - executed,
            violations=int(counts[Code.FAIL]),
            errors=int(counts[Code.ERROR] + counts[Code.SOURCE_FAILED]),
        )

    def _more(self) -> Iterator[Task] | None:
        """Every case is run: merge the records, and have the samples drawn by the workers that are still there."""
        self.progress.update(self._count())
        if self._finisher is None:
            return None
        tasks: list[StripTask] = self._finisher.merge()
        return iter(tasks) if tasks else None


def _chosen(plan: Plan, invocation: Invocation, names: Names) -> NDArray[np.bool_]:
    """Return which places this invocation is to execute."""
    only = _plain_seeds(plan, invocation.only, names)
    chosen = np.zeros((len(plan.refs), plan.cases_per_seed), dtype=np.bool_)
    for unit in plan.units():
        chosen[unit.index] = [
            is_chosen(address, unit.position, limit=invocation.limit, only=only) for address in unit.cases
        ]
    # a source goes with its follow-ups: where none is chosen it is not either, unless the suite has nothing else
    if plan.cases_per_seed > 1:
        chosen[:, 0] &= chosen[:, 1:].any(axis=1)
    return chosen.reshape(-1)


def _plain_seeds(plan: Plan, only: Selection, names: Names) -> Selection:
    """Let ``only=seed:…`` name seeds as a report with hashed ids shows them."""
    if names.key is None or not only.seeds:
        return only
    shown = {names.seed_id(ref.dataset, ref.seed_id): ref.seed_id for ref in plan.refs}
    return replace(only, seeds=frozenset(shown.get(seed, seed) for seed in only.seeds))


@contextmanager
def _stop_gently(dispatcher: Dispatcher) -> Iterator[None]:
    """Let the first Ctrl-C (or SIGTERM) end the run at a safe point; a second one ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    earlier = {number: signal.getsignal(number) for number in numbers}

    def stop(number: int, frame: FrameType | None) -> None:
        if dispatcher.stop:
            raise KeyboardInterrupt
        dispatcher.stop = True

    for each in numbers:
        signal.signal(each, stop)
    try:
        yield
    finally:
        for each, handler in earlier.items():
            signal.signal(each, handler)
