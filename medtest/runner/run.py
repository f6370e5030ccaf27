"""Runs a suite: plan → batches → records, one folder for each system."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np

from medtest.core.errors import SEVERITY_ORDER, ExitCode, MedtestError
from medtest.core.files.by_content import forget_pictures
from medtest.core.portable import processor_notices
from medtest.core.records import PICTURES
from medtest.runner.folder import OUTPUTS, FolderLock, check_format, set_unread_aside
from medtest.runner.pool.callbacks import Callbacks
from medtest.runner.pool.dispatch import HALT_SECONDS, Dispatcher
from medtest.runner.pool.layout import Layout
from medtest.runner.pool.messages import Job, PoolTask, Row, Told, UnitTask
from medtest.runner.pool.stopping import stop_gently
from medtest.runner.pool.workplace import CallingProcess, LocalProcesses, Workplace
from medtest.runner.prepared import PreparedRun, prepare_run
from medtest.runner.records import answers
from medtest.runner.records.case_set import CaseSet
from medtest.runner.records.judged_by import JudgedBy
from medtest.runner.records.ledger import CasePlaces, RecordLedger
from medtest.runner.records.shards import Code
from medtest.runner.replaying.judging_again import JudgingAgain
from medtest.runner.reporting import finish
from medtest.runner.reporting.outcome import Count, Limits, Progress, RunOutcome, SystemOutcome
from medtest.runner.reporting.progress import choose_progress
from medtest.suite.digest import oracle_digest
from medtest.suite.model import Invocation, Suite
from medtest.systems.answering.asking import draws_calls

_PROGRESS_SECONDS = 0.1
_AHEAD = 3
"""Seeds that a worker whose systems are asked over an API works on at a time, at least."""
_CALLS_AHEAD = 128
"""Calls of a system that shall be there to be drawn at a time."""


def run_suite(
    suite: Suite,
    invocation: Invocation,
    *,
    progress: Progress | None = None,
    limits: Limits | None = None,
    hold: ExitStack | None = None,
    announce: Callable[[str], None] | None = None,
    judged: str = "",
) -> RunOutcome:
    """Run whatever of a suite is chosen and not finished yet, for all its systems at once.

    Args:
        suite: A checked suite.
        invocation: How this call runs it.
        progress: Who wants to know how far it is; by default a line on a terminal, elsewhere one every half minute.
        limits: Bounds that tests tighten.
        hold: Takes the locks of the folders, so that a caller who writes tables and a report into them keeps them
            until it closes this stack; by default they are given back at the end of the run.
        announce: Is told, before anything is run, what each system says of itself (whom it asks, and where images go)
            and that this processor may make other bytes than most, where it may; the outcome's notices say so too.
        judged: Digest of how the call judges, where that is not the suite's own oracle; it enters the view's digest.

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
            run = _Run(prepared, invocation, bounds, shown, judged or oracle_digest(suite).value)
            run.lock(stack)
            run.open()
            run.announce(announce)
            run.execute()
            return run.outcome(time.monotonic() - started)
    finally:
        shown.close()


@dataclass
class _Run:
    """One call of :func:`run_suite`."""

    prepared: PreparedRun
    invocation: Invocation
    limits: Limits
    progress: Progress
    judged: str
    ledgers: list[RecordLedger] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    interrupted: bool = False
    stopped: ExitCode = ExitCode.OK
    device: str = ""
    workers: int = 0
    running_seconds: float = 0.0
    layout: Layout | None = None

    def __post_init__(self) -> None:
        self._dispatcher: Dispatcher | None = None
        self._place: Workplace = LocalProcesses()
        self._told = 0.0
        self._finisher: finish.Finisher | None = None
        self._finished: list[SystemOutcome] = []
        self._calls: dict[int, str] = {}
        self._merged = False
        self.notices = list(self.prepared.notices)

    def lock(self, stack: ExitStack) -> None:
        """Lock every folder, in one order for all processes, and move old ones aside if asked."""
        for folder in sorted({*self.prepared.folders, *self.prepared.aside}):
            lock = FolderLock(folder)
            lock.acquire()
            stack.callback(lock.release)
            if self.invocation.fresh:
                moved = lock.move_aside()
                if moved is not None:
                    self.notices.append(f"Earlier results were moved to {moved.parent.name}/{moved.name}.")
            check_format(folder)

    def open(self) -> None:
        """Read what earlier runs left."""
        prepared = self.prepared
        places = CasePlaces(prepared.plan, prepared.names)
        oracle, judging = prepared.suite.build_oracle(), prepared.suite.judging()
        if oracle.from_records:
            judging = {**judging, "revision": oracle.revision}
        for system, digest, folder in zip(prepared.systems, prepared.digests, prepared.folders, strict=True):
            ledger = RecordLedger(
                folder=folder,
                schema=prepared.schema,
                digest=digest.value,
                primary=prepared.suite.oracle.primary,
                places=places,
                chosen=prepared.chosen,
                limits=self.limits,
                judging=judging,
                judged=JudgedBy.of(oracle),
                maps=prepared.suite.needs_maps,
            )
            self.ledgers.append(ledger)
            for problem in ledger.set_aside:
                self.notices.append(f"{system.record_name}: {problem}; it was set aside, its cases are run again.")
            for name in set_unread_aside(folder):
                self.notices.append(
                    f"{system.record_name}: {name} cannot be read; it was set aside and is written anew. What it named "
                    "in MLflow stays there; a new run stands beside it."
                )
        asked = None
        if any(ledger.outside for ledger in self.ledgers):
            asked = CaseSet.of(prepared.plan, prepared.chosen, prepared.names)
        self._finisher = finish.Finisher(
            prepared=prepared,
            invocation=self.invocation,
            ledgers=self.ledgers,
            places=places,
            limits=self.limits,
            asked=asked,
            view="" if asked is None else asked.view(self.judged),
        )

    def announce(self, announce: Callable[[str], None] | None) -> None:
        """Pass on what systems and reader say of themselves, before any of them is handed an image."""
        reader = self.prepared.suite.build_reader()
        of_parts = [system.notice() for system in self.prepared.systems]
        of_parts += [] if reader is None else [reader.notice()]
        for said in [*processor_notices(), *filter(None, of_parts)]:
            self.notices.append(said)
            if announce is not None:
                announce(said)

    def execute(self) -> None:
        """Run what is to do, and finish the folders."""
        try:
            self._judge_again()
            if not self.interrupted and any(ledger.to_do for ledger in self.ledgers):
                self._run_on(self._workplace(), self._unit_tasks())
            if not self._merged and not self.interrupted:
                self._run_on(self._local(), None)
        finally:
            with ExitStack() as all_of_them:  # one that finds no room takes none of the others along
                for ledger in self.ledgers:
                    all_of_them.callback(ledger.flush)
        for system, folder in zip(self.prepared.systems, self.prepared.folders, strict=True):
            if draws_calls(system) and (said := system.account(folder)):
                self.notices.append(said)

    def _judge_again(self) -> None:
        """Judge answers again that an earlier revision of the oracle judged; no system is loaded for it."""
        again = JudgingAgain(self.prepared, self.invocation, self.ledgers, self.limits)
        if again.needed:
            again.run(self._job("cpu"), self._local())
            self.interrupted = again.interrupted
            self.notices += again.notices

    def _run_on(self, workplace: Workplace, tasks: Iterator[PoolTask] | None) -> None:
        """Have tasks run by workers of a workplace, and pictures drawn where it can; None for the pictures alone."""
        self._place = workplace
        needed = any(type(system).needs_device for system in self.prepared.systems)
        device = workplace.device(self.invocation.device, needed=needed)
        asked = [system for system in self.prepared.systems if draws_calls(system)]
        at_once = len(asked) == len(self.prepared.systems) and all(system.own_limits for system in asked)
        dispatcher = self._dispatcher = Dispatcher(
            job=replace(self._job(device or "auto"), as_needed=tasks is None),
            ahead=self._ahead() if at_once else 1,
            gently=bool(asked),
            workplace=workplace,
            tasks=tasks or iter(()),
            batch_seconds=self.invocation.batch_seconds,
            limits=self.limits,
            callbacks=Callbacks(
                result=self._rows,
                renew=self._renew,
                tick=self._tick,
                layout=self._choose,
                more=self._more,
                told=self._told_calls,
            ),
        )
        try:
            with stop_gently(dispatcher), closing(workplace):
                workplace.open()
                if tasks is not None:
                    dispatcher.run()
                else:
                    dispatcher.run_later_tasks()
            if dispatcher.stop:  # after the last look at it
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.interrupted = True
        self.device = self.device or dispatcher.device
        self.workers = self.workers or dispatcher.started
        self.running_seconds = self.running_seconds or dispatcher.running_seconds
        self.notices += dispatcher.notices + workplace.notices
        for spent in dispatcher.spent:
            self.notices.append(f"{self.prepared.systems[spent.system].record_name}: {spent.text}")
            self.stopped = min(self.stopped, spent.code, key=SEVERITY_ORDER.index)

    def _ahead(self) -> int:
        """Return how many seeds are worked on at a time where systems are asked over an API.

        A prompt is one call where a picture has many questions: more of them are needed for as many calls under way.
        """
        width = max(1, self.prepared.plan.cases_per_seed)
        return max(_AHEAD, -(-_CALLS_AHEAD // width))

    def _workplace(self) -> Workplace:
        """Return where the cases are run: systems over an API are asked from here, for keys do not travel."""
        cluster = self.invocation.cluster
        if cluster is None:
            return self._local()
        in_process = any(type(system).in_process for system in self.prepared.systems)
        if in_process or any(draws_calls(system) for system in self.prepared.systems):
            why = "an object of this program" if in_process else "asked over an API, and keys do not travel"
            self.notices.append(f"Workers stay on this machine: a system is {why}.")
            return self._local()
        from medtest.runner.cluster.ray_cluster import RayCluster

        return RayCluster(cluster, self.invocation.home / OUTPUTS, data=self.invocation.data_url)

    def _local(self) -> Workplace:
        in_process = any(type(system).in_process for system in self.prepared.systems)
        return CallingProcess() if in_process else LocalProcesses()

    def outcome(self, seconds: float) -> RunOutcome:
        """Write the last files and say what became of everything."""
        finisher = self._finisher
        if finisher is None:
            raise MedtestError("A run was finished before it was opened.")
        layout = self.layout or Layout(workers=0, threads=0)
        if not self.interrupted:
            finisher.close(device=self.device, layout=layout)
        if self.prepared.suite.privacy.images == "none":
            for folder in self.prepared.folders:
                forget_pictures(folder / PICTURES)
                answers.forget(folder)
        systems = finisher.outcomes()
        return RunOutcome(
            systems=systems,
            interrupted=self.interrupted,
            device=self.device,
            workers=self.workers,
            threads=layout.threads,
            seconds=seconds,
            running_seconds=self.running_seconds,
            notices=tuple(dict.fromkeys([*(system.reuse for system in systems if system.reuse), *self.notices])),
            asked=finisher.asked,
            view=finisher.view,
            stopped=self.stopped,
        )

    def _job(self, device: str) -> Job:
        suite = self.prepared.suite
        return Job.of(
            suite,
            self.invocation,
            hash_key=self.prepared.names.key,
            device=device,
            strata=self.prepared.strata,
            send_seconds=self.limits.send_seconds,
            kept=self.invocation.kept,
            folders=tuple(str(folder.resolve()) for folder in self.prepared.folders),
            shared=str(self.invocation.shared.resolve()),
            budget=self.invocation.budget,
            # a picture that must not stay is kept for no other run either
            cache="off" if suite.task.prompts and suite.privacy.images == "none" else self.invocation.cache,
            batch_seconds=self.invocation.batch_seconds,
            readers=self.invocation.workers or 0,
            word_key=self.prepared.names.word_key,
        )

    def _choose(self, device: str) -> Layout:
        units = int(np.any([ledger.units_to_do() for ledger in self.ledgers], axis=0).sum())
        asking = any(draws_calls(system) for system in self.prepared.systems)
        alone = asking or any(type(system).in_process for system in self.prepared.systems)
        workers = 1 if alone else self.invocation.workers  # one gate before each server, one ledger; one such object
        self.layout = self._place.layout(device=device, units=units, workers=workers, threads=self.invocation.threads)
        return self.layout

    def _unit_tasks(self) -> Iterator[PoolTask]:
        for index in range(len(self.prepared.plan.refs)):
            task = self._task(index, {})
            if task is not None:
                yield task

    def _task(self, index: int, given_up: Mapping[tuple[int, int], str]) -> UnitTask | None:
        todo = tuple(ledger.todo(index) for ledger in self.ledgers)
        if not any(any(part) for part in todo):
            return None
        owner = int(self.prepared.owners[index])
        return UnitTask(
            index=index, source=owner, ref=self.prepared.plan.refs[index], todo=todo, given_up=dict(given_up)
        )

    def _renew(self, task: UnitTask) -> UnitTask | None:
        return self._task(task.index, task.given_up)

    def _rows(self, rows: list[Row], unit: int) -> None:
        for system, case, row, answer in rows:
            self.ledgers[system].take(unit, case, row, answer)

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
            calls=self._calls_line(),
        )

    def _calls_line(self) -> str:
        """Return how calls over an API stand, and once the run was stopped how long they are waited for."""
        told = " | ".join(text for _, text in sorted(self._calls.items()))
        if self._dispatcher is None or not self._dispatcher.halting:
            return told
        shown = told if "stopping" in told else f"stopping{': ' if told else ''}{told}"
        return f"{shown} · {HALT_SECONDS:g} s at most; Ctrl-C again gives them up"

    def _told_calls(self, told: Told) -> None:
        name = f"{self.prepared.systems[told.system].record_name}: " if len(self.prepared.systems) > 1 else ""
        self._calls[told.system] = name + told.text

    def _more(self) -> Iterator[PoolTask] | None:
        """Every case is run: merge the records, and have the samples drawn by the workers that are still there."""
        self.progress.update(self._count())
        if self._finisher is None or not self._place.draws:
            return None
        self._merged = True
        tasks = self._finisher.merge()
        return iter(tasks) if tasks else None
