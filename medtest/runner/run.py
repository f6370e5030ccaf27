"""Execution of a suite: plan → batches → records, one folder per system."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np

from medtest.core.cases import Reason
from medtest.core.errors import SEVERITY_ORDER, ExitCode, MedtestError, typed_error
from medtest.core.files.by_content import forget_pictures
from medtest.core.portable import processor_notices
from medtest.core.records import PICTURES
from medtest.runner.folder import OUTPUTS, FolderLock, check_format, set_unread_aside
from medtest.runner.pool.dispatch import HALT_SECONDS, Dispatcher
from medtest.runner.pool.layout import Layout
from medtest.runner.pool.messages import Job, Place, PoolTask, Row, Told, UnitTask
from medtest.runner.pool.stopping import stop_gently
from medtest.runner.pool.workplace import Workplace
from medtest.runner.prepared import PreparedRun, prepare_run
from medtest.runner.records import answers
from medtest.runner.records.case_set import CaseSet
from medtest.runner.records.judged_by import JudgedBy
from medtest.runner.records.ledger import CasePlaces, RecordLedger
from medtest.runner.records.shards import Code
from medtest.runner.replaying.judging_again import JudgingAgain
from medtest.runner.reporting import finish
from medtest.runner.reporting.outcome import Count, Limits, Progress, RunOutcome
from medtest.runner.reporting.progress import choose_progress
from medtest.suite.digest import oracle_digest
from medtest.suite.model import Invocation, Suite
from medtest.systems.answering.asking import draws_calls

_PROGRESS_SECONDS = 0.1
_AHEAD = 3
"""Minimum number of seeds in progress per worker whose systems are asked over an API."""
_CALLS_AHEAD = 128
"""Number of calls that should be available to a system at a time."""


def run_suite(
    suite: Suite,
    invocation: Invocation,
    *,
    progress: Progress | None = None,
    limits: Limits | None = None,
    hold: ExitStack | None = None,
    announce: Callable[[str], None] | None = None,
    judged: str = "",
    read_by: str = "",
) -> RunOutcome:
    """Run the chosen unfinished cases of a suite, for all its systems at once.

    Args:
        suite: A checked suite.
        invocation: Settings of this call.
        progress: Receives the progress; by default a line on a terminal, elsewhere one every half minute.
        limits: Limits that tests tighten.
        hold: Takes the locks of the folders, so that a caller who writes tables and a report keeps them until it closes
            this stack; by default they are released at the end of the run.
        announce: Receives, before anything is run, the notices of each system (which service it asks, and where images
            go) and a warning if this processor may give different bytes; the outcome's notices repeat them.
        judged: Digest of the call's judgement, if that is not the suite's own oracle; it enters the view's digest.
        read_by: Reader of the folders' records if the call cannot open it; "" if it can.

    Returns:
        The outcome of each system. Interrupted runs return too, with ``interrupted`` set and their shards complete.

    Raises:
        UserMistakes: Seeds or systems are unusable, or cases remain that only the reader ``read_by`` may read.
        FolderInUse: Another process runs this suite on this system.
        OutputProblem: The folder cannot be written; finished cases are kept.
        MedtestError: The systems cannot be loaded.
    """
    started = time.monotonic()
    prepared = prepare_run(suite, invocation)
    display = progress if progress is not None else choose_progress(quiet=invocation.quiet)
    try:
        with ExitStack() if hold is None else nullcontext(hold) as stack:
            run = _Run(prepared, invocation, limits or Limits(), display, judged or oracle_digest(suite).value)
            run.lock(stack)
            run.open()
            if read_by:
                run.require_reader(read_by)
            run.announce(announce)
            run.execute()
            return run.outcome(time.monotonic() - started)
    finally:
        display.close()


@dataclass
class _Run:
    """One call of :func:`run_suite`."""

    prepared: PreparedRun
    invocation: Invocation
    limits: Limits
    progress: Progress
    judged: str
    ledgers: list[RecordLedger] = field(default_factory=list)
    interrupted: bool = False
    stopped: ExitCode = ExitCode.OK
    device: str = ""
    workers: int = 0
    running_seconds: float = 0.0
    layout: Layout | None = None

    def __post_init__(self) -> None:
        self._dispatcher: Dispatcher | None = None
        self._place = Workplace()
        self._told = 0.0
        self._finisher: finish.Finisher | None = None
        self._calls: dict[int, str] = {}
        self._merged = False
        self.notices = list(self.prepared.notices)

    def lock(self, stack: ExitStack) -> None:
        """Lock every folder, in the same order in all processes, and move old ones aside if requested."""
        for folder in sorted({*self.prepared.folders, *self.prepared.aside}):
            lock = FolderLock(folder)
            lock.acquire()
            stack.callback(lock.release)
            if self.invocation.fresh and (moved := lock.move_aside()) is not None:
                self.notices.append(f"Earlier results were moved to {moved.parent.name}/{moved.name}.")
            check_format(folder)

    def open(self) -> None:
        """Read the records of earlier runs."""
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
                    f"{system.record_name}: {name} cannot be read; it was set aside and is written again. Its MLflow "
                    "run stays, and a new one is added."
                )
        outside = any(ledger.outside for ledger in self.ledgers)
        requested = CaseSet.of(prepared.plan, prepared.chosen, prepared.names) if outside else None
        self._finisher = finish.Finisher(
            prepared=prepared,
            invocation=self.invocation,
            ledgers=self.ledgers,
            places=places,
            limits=self.limits,
            asked=requested,
            view="" if requested is None else requested.view(self.judged),
        )

    def require_reader(self, name: str) -> None:
        """Refuse a run with cases to be read by a reader that the call does not name.

        Raises:
            UserMistakes: There are such cases.
        """
        if any(ledger.needs_reader for ledger in self.ledgers):
            raise typed_error(
                "oracles.reader",
                "unfinished cases of a run whose other pictures another reader has read",
                f"the reader of its records, {name}",
                f"type oracles.reader.use={name} with its settings, or fresh=true",
            )

    def announce(self, announce: Callable[[str], None] | None) -> None:
        """Pass on notices of systems and reader before any of them receives an image."""
        reader = self.prepared.suite.build_reader()
        part_notices = [system.notice() for system in self.prepared.systems]
        part_notices += [] if reader is None else [reader.notice()]
        for notice in [*processor_notices(), *filter(None, part_notices)]:
            self.notices.append(notice)
            if announce is not None:
                announce(notice)

    def execute(self) -> None:
        """Run the unfinished cases, and finish the folders."""
        try:
            self._judge_again()
            if not self.interrupted and any(ledger.to_do for ledger in self.ledgers):
                tasks = (self._task(index, {}) for index in range(len(self.prepared.plan.refs)))
                self._run_tasks(self._workplace(), filter(None, tasks))
            if not self._merged and not self.interrupted:
                self._run_tasks(self._local(), None)
        finally:
            with ExitStack() as flushes:  # a ledger on a full disk does not prevent the others from being flushed
                for ledger in self.ledgers:
                    flushes.callback(ledger.flush)
        for system, folder in zip(self.prepared.systems, self.prepared.folders, strict=True):
            if draws_calls(system) and (account := system.account(folder)):
                self.notices.append(account)

    def _judge_again(self) -> None:
        """Judge stored answers again that an earlier revision of the oracle judged; no system is loaded."""
        again = JudgingAgain(self.prepared, self.invocation, self.ledgers, self.limits)
        if again.needed:
            again.run(self._job("cpu"), self._local())
            self.interrupted = again.interrupted
            self.notices += again.notices

    def _run_tasks(self, workplace: Workplace, tasks: Iterator[PoolTask] | None) -> None:
        """Run tasks in the workers of a workplace, and draw pictures if it can; None for pictures only."""
        self._place = workplace
        needs_device = any(type(system).needs_device for system in self.prepared.systems)
        device = workplace.device(self.invocation.device, needed=needs_device)
        api_systems = [system for system in self.prepared.systems if draws_calls(system)]
        at_once = len(api_systems) == len(self.prepared.systems) and all(system.own_limits for system in api_systems)
        dispatcher = self._dispatcher = Dispatcher(
            job=replace(self._job(device or "auto"), as_needed=tasks is None),
            ahead=self._ahead() if at_once else 1,
            gently=bool(api_systems),
            workplace=workplace,
            tasks=tasks or iter(()),
            batch_seconds=self.invocation.batch_seconds,
            limits=self.limits,
            result=self._rows,
            renew=lambda task: self._task(task.index, task.given_up),
            tick=self._tick,
            layout=self._choose,
            more=self._more,
            told=self._update_calls,
        )
        run = dispatcher.run_later_tasks if tasks is None else dispatcher.run
        try:
            with stop_gently(dispatcher), closing(workplace):
                workplace.open()
                run()
            if dispatcher.stop:  # after it was last checked
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
        """Return the number of seeds in progress for systems asked over an API.

        A prompt is one call whereas a picture has many questions: more prompts are needed for the same number of calls.
        """
        width = max(1, self.prepared.plan.cases_per_seed)
        return max(_AHEAD, -(-_CALLS_AHEAD // width))

    def _workplace(self) -> Workplace:
        """Return the workplace of the cases: API systems are asked from this process, as keys stay here."""
        cluster = self.invocation.cluster
        if cluster is None:
            return self._local()
        in_process = any(type(system).in_process for system in self.prepared.systems)
        if in_process or any(draws_calls(system) for system in self.prepared.systems):
            reason = "an object of this program" if in_process else "called over an API, and keys are not sent to nodes"
            self.notices.append(f"Workers stay on this machine: a system is {reason}.")
            return self._local()
        from medtest.runner.cluster.ray_cluster import RayCluster

        return RayCluster(cluster, self.invocation.home / OUTPUTS, data=self.invocation.data_url)

    def _local(self) -> Workplace:
        return Workplace(in_process=any(type(system).in_process for system in self.prepared.systems))

    def outcome(self, seconds: float) -> RunOutcome:
        """Write the last files and return the outcome."""
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
            # pictures that must not be stored are not cached for other runs either
            cache="off" if suite.task.prompts and suite.privacy.images == "none" else self.invocation.cache,
            batch_seconds=self.invocation.batch_seconds,
            readers=self.invocation.workers or 0,
            word_key=self.prepared.names.word_key,
        )

    def _choose(self, device: str) -> Layout:
        units = int(np.any([ledger.units_to_do() for ledger in self.ledgers], axis=0).sum())
        # one rate limit per server and one ledger; one object of this program
        single_worker = any(draws_calls(system) or type(system).in_process for system in self.prepared.systems)
        workers = 1 if single_worker else self.invocation.workers
        self.layout = self._place.layout(device=device, units=units, workers=workers, threads=self.invocation.threads)
        return self.layout

    def _task(self, index: int, given_up: Mapping[Place, Reason]) -> UnitTask | None:
        todo = tuple(ledger.todo(index) for ledger in self.ledgers)
        if not any(any(part) for part in todo):
            return None
        owner = int(self.prepared.owners[index])
        return UnitTask(
            index=index, source=owner, ref=self.prepared.plan.refs[index], todo=todo, given_up=dict(given_up)
        )

    def _rows(self, rows: list[Row], unit: int) -> None:
        for system, case, row, stored in rows:
            self.ledgers[system].take(unit, case, row, stored)

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
        finished = total - sum(ledger.left for ledger in self.ledgers)
        executed = sum(ledger.executed for ledger in self.ledgers)
        return Count(
            done=finished,
            total=total,
            reused=finished - executed,
            violations=int(counts[Code.FAIL]),
            errors=int(counts[Code.ERROR] + counts[Code.SOURCE_FAILED]),
            calls=self._calls_line(),
        )

    def _calls_line(self) -> str:
        """Return the progress of API calls, and after a stop how long the run waits for them."""
        progress = " | ".join(text for _, text in sorted(self._calls.items()))
        if self._dispatcher is None or not self._dispatcher.halting:
            return progress
        line = progress if "stopping" in progress else f"stopping{': ' if progress else ''}{progress}"
        return f"{line} · {HALT_SECONDS:g} s at most; press Ctrl-C again to abandon them"

    def _update_calls(self, report: Told) -> None:
        name = f"{self.prepared.systems[report.system].record_name}: " if len(self.prepared.systems) > 1 else ""
        self._calls[report.system] = name + report.text

    def _more(self) -> Iterator[PoolTask] | None:
        """Merge the records after all cases have run, and let the remaining workers draw the samples."""
        self.progress.update(self._count())
        if self._finisher is None or not self._place.draws:
            return None
        self._merged = True
        tasks = self._finisher.merge()
        return iter(tasks) if tasks else None
