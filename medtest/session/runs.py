"""Execution of a checked suite: run it, finish its folders, return the result.

Both the command line (:mod:`medtest.cli.run.finish`) and :func:`medtest.run` call :func:`execute`.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.errors import FolderInUse, MedtestError, NotTracked, UserMistakes
from medtest.core.files.paths import home as default_home
from medtest.core.files.paths import typed_folder
from medtest.runner.reporting import signals
from medtest.session.arguments import WHERE, Systems, mistake, typed_option, typed_relations, typed_systems
from medtest.session.result import Result
from medtest.suite.compose import Loaded, load
from medtest.suite.data_url import fetched, is_url
from medtest.suite.model import Invocation, KeptFollowUps, Suite
from medtest.suite.reading.library import COMMAND_LINE
from medtest.suite.reading.outline import write_timings
from medtest.suite.schema import ExecutorBlock, RunBlock
from medtest.suite.sharding import Shard
from medtest.systems.answering.asking import BudgetLimits

if TYPE_CHECKING:
    from medtest.readers.base import Readings
    from medtest.report.tracking import Parents
    from medtest.runner.reporting.outcome import Progress, RunOutcome
    from medtest.session.result import Result

_TIMED_CASES = 50
"""With fewer cases, the timing is dominated by loading."""


def run(
    suite: str | Path,
    systems: Systems | None = None,
    *,
    relations: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    limit: int | None = None,
    only: str | Sequence[str] | None = None,
    data: str | Path | None = None,
    fingerprint: str = "",
    home: str | Path | None = None,
    overrides: str | Sequence[str] = (),
    quiet: bool = True,
    **options: Any,
) -> Result:
    """Run a suite and return its results, like ``medtest run``.

    Args:
        suite: A suite's name (``"polyp_seg"``), or the path of its YAML file.
        systems: A name as in ``model=``; a function or an object of this program (see :class:`Model`); a list of those;
            or a mapping of names to settings, functions or objects. None uses the suite's own.
        relations: Names of the relations to run, optionally with their settings; None for all.
        limit: First N seeds of each data set.
        only: Part of the plan, such as ``"relation:blur,severity:3"``.
        data: Folder of your images, if the suite needs one.
        fingerprint: Identity of the only function or object, see :attr:`Model.fingerprint`.
        home: Folder that holds ``outputs/`` and ``mlruns/``; ``MEDTEST_HOME`` or the working directory by default.
        overrides: One or several further command-line tokens: ``["oracles.primary.threshold=0.5",
            "prepare.size=256"]``.
        quiet: Whether to hide progress.
        options: Further options of a run by their names: ``device``, ``workers``, ``batch_size``, ``fresh``, ``track``.

    Returns:
        Records, tables, report, gates. A failed gate or cases that are errors raise no exception: see
        :attr:`Result.code`.

    Raises:
        UserMistakes: All mistakes of the suite and the arguments, at once.
        MedtestError: The run failed; finished cases are kept.
        KeyboardInterrupt: It was stopped; the same call continues the run.
    """
    typed, objects = typed_systems(systems, fingerprint)
    typed += [*typed_relations(relations)]
    plain = {"limit": limit, "only": only, "data": data, "quiet": quiet, **options}
    typed += [typed_option(key, value) for key, value in plain.items() if value is not None]
    typed += [overrides] if isinstance(overrides, str) else overrides
    try:
        loaded = load(suite, typed, objects=objects, for_run=True)
    except UserMistakes as error:
        mistakes = [
            replace(entry, where=WHERE) if entry.where == COMMAND_LINE.where else entry for entry in error.mistakes
        ]
        raise UserMistakes(mistakes, error.heading) from None
    if loaded.options.plan:
        raise mistake("plan", "true", "a run; medtest.load_suite checks a suite without running it", "leave plan out")
    command = ""
    if not objects:
        from medtest.suite.commandline.command import typed_command

        hide = loaded.suite.privacy.seed_ids == "hashed"
        command = typed_command("medtest run", [f"suite={suite}", *typed], hide_paths=hide)
    place = default_home() if home is None else Path(home).expanduser().resolve()
    announced: list[str] = []
    result = execute(loaded, invocation_of(loaded, command, home=place), announce=announced.append)
    if result.outcome.interrupted:
        raise KeyboardInterrupt(result.finished.note)
    return result


def execute(
    loaded: Loaded,
    invocation: Invocation,
    *,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
    parents: Parents | None = None,
    sweep: bool = False,
) -> Result:
    """Run a suite, then write tables, report and MLflow under the folders' locks.

    The folder's records are judged by the suite's own oracle; tables and report by the requested one.

    Args:
        loaded: The checked suite.
        invocation: Options of the run.
        progress: Receiver of progress; chosen by ``invocation.quiet`` by default.
        announce: Called with notices of the systems before the run, and with notices on reading for a view.
        parents: Parent runs in MLflow created by an earlier job of the sweep.
        sweep: Whether this is a job of a sweep.

    Raises:
        MedtestError: The run failed; finished cases are kept.
    """
    from medtest.report.finish import finish, finish_shard
    from medtest.results.records.reading import read_records
    from medtest.runner.privacy.hidden_words import check_reader, hidden_words
    from medtest.runner.reporting.progress import choose_progress
    from medtest.runner.run import run_suite
    from medtest.session.own_reader import with_own_reader

    suite = loaded.suite
    check_reference(suite, invocation)
    if suite.gates:
        from medtest.report.compared.gating import check_paired

        check_paired(suite.gates, invocation.home)
    loaded, read_by = with_own_reader(loaded, invocation)
    if loaded.view:
        _check_items(suite, invocation)
    if loaded.reader is not None:
        check_reader(suite, loaded.reader)
    signals.phase("run")
    shown = progress if progress is not None else choose_progress(quiet=invocation.quiet)
    with ExitStack() as locks:
        locks.callback(shown.close)
        try:
            outcome = run_suite(
                loaded.own,
                invocation,
                progress=shown,
                hold=locks,
                announce=announce,
                judged=loaded.view,
                read_by=read_by,
            )
            if not suite.crafts:  # crafting does not count towards the time of a case
                _keep_timing(invocation, outcome)
            readings: dict[str, Readings] = {}
            if not outcome.interrupted and invocation.shard is None:
                signals.phase("tables")
                if loaded.reader is not None:
                    readings, outcome = read_records(
                        loaded.reader,
                        invocation,
                        outcome,
                        tell=announce or (lambda line: None),
                        progress=shown,
                        words=hidden_words(suite, invocation.home),
                    )
            if invocation.shard is not None:
                return Result(suite, outcome, finish_shard(suite, invocation.shard, outcome))
            finished = finish(
                suite,
                invocation,
                outcome,
                view=loaded.view,
                own=loaded.own,
                readings=readings,
                parents=parents,
                sweep=sweep,
                phase=shown.phase,
            )
        except (UserMistakes, FolderInUse):
            raise  # nothing was run
        except MedtestError as error:
            _note_failure(suite, invocation, error, parents=parents, sweep=sweep)
            raise
    return Result(suite, outcome, finished)


def invocation_of(
    loaded: Loaded, command: str = "", *, sweep_command: str = "", home: Path | None = None
) -> Invocation:
    """Return the invocation of a suite for the given options.

    Args:
        loaded: The suite and its options.
        command: The command of this run, for its report.
        sweep_command: The command of the sweep that it is a job of.
        home: Folder that holds ``outputs/`` and ``mlruns/``; the default one if None.
    """
    options = loaded.options
    place = default_home() if home is None else home
    if loaded.suite.privacy.seed_ids == "hashed":  # the command is shown in reports and in MLflow
        command, sweep_command = (re.sub(r"seed:[^,'\"\]]*", "seed:…", text) for text in (command, sweep_command))
    return Invocation(
        home=place,
        data=_data_folder(options, place),
        data_url=options.data if options.data is not None and is_url(options.data) else "",
        cluster=_cluster(options),
        limit=options.limit,
        only=loaded.selection,
        shard=None if options.shard is None else Shard.typed(options.shard),
        device="cuda:0" if options.device == "cuda" else options.device,
        workers=options.workers,
        threads=options.threads,
        batch_size=options.batch_size,
        batch_seconds=options.batch_seconds,
        fresh=options.fresh,
        tracking_uri=options.tracking.uri,
        tag_model=options.tracking.tag_model,
        alias=options.tracking.alias or "",
        track=options.track and options.tracking.enabled,
        quiet=options.quiet,
        command=command,
        sweep_command=sweep_command,
        kept=_kept(loaded, place),
        reference=options.reference,
        junit=options.junit or "",
        browser=options.report.browser,
        budget=BudgetLimits(max_usd=options.budget.max_usd, max_calls=options.budget.max_calls),
        cache=options.cache,
    )


def _cluster(options: RunBlock) -> ExecutorBlock | None:
    if options.executor.name == "local":
        return None
    from medtest.runner.cluster.chosen import cluster_of

    return cluster_of(options.executor)


def _data_folder(options: RunBlock, home: Path) -> Path | None:
    """Return the local folder of the user's data; a URL is downloaded first."""
    if options.data is None or not is_url(options.data):
        return None if options.data is None else typed_folder(options.data)
    name = hashlib.sha256(options.data.encode()).hexdigest()[:16]
    return fetched(
        options.data, home.resolve() / "outputs" / ".data" / name, most=int(options.executor.cache_gb * 1024**3)
    )


def _kept(loaded: Loaded, home: Path) -> KeptFollowUps | None:
    if loaded.options.followups != "store":
        return None
    from medtest.runner.followups import StoredFollowUps

    return StoredFollowUps.of(loaded.suite, home)


def check_reference(suite: Suite, invocation: Invocation) -> None:
    """Check that the reference system exists before the run.

    Raises:
        UserMistakes: ``reference=`` names no system and no folder, or the suite does not support it.
    """
    if invocation.reference is not None:
        from medtest.report.pages.reference_system import find_reference

        own = {plan.id: invocation.home for plan in suite.systems}
        find_reference(invocation.reference, suite=suite, home=invocation.home, folders=own)


def _check_items(suite: Suite, invocation: Invocation) -> None:
    """Check that a view's oracle names only questions that are asked; the run itself checks the suite's own oracle.

    Raises:
        UserMistakes: It names an unknown question.
    """
    items = {item for source in suite.build_seeds(invocation.data) for ref in source.places() for item in ref.items}
    mistakes = suite.build_oracle().unknown_items(items)
    if mistakes:
        raise UserMistakes(mistakes)


def _note_failure(
    suite: Suite, invocation: Invocation, error: MedtestError, *, parents: Parents | None, sweep: bool
) -> None:
    """Mark the invocation FAILED in MLflow; errors of MLflow are ignored in favour of the original one."""
    if not invocation.track:
        return
    from medtest.report.mlflow.tracked import track_failure

    with contextlib.suppress(NotTracked):  # the first job of a sweep has no parents to leave open, so it ends its own
        track_failure(suite, invocation, type(error).__name__, parents=parents, sweep=sweep and parents is not None)


def _keep_timing(invocation: Invocation, outcome: RunOutcome) -> None:
    executed = sum(system.cases_executed for system in outcome.systems)
    if executed >= _TIMED_CASES and not outcome.interrupted:
        names = [system.record_name for system in outcome.systems if system.cases_executed]
        write_timings(invocation.home, names, 1000.0 * outcome.running_seconds / executed)
