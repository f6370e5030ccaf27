"""From records to what people read: tables, gates, reports, manifests, MLflow, for every system of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import RenderableType

from medtest.core.errors import SEVERITY_ORDER, ExitCode, NotTracked
from medtest.readers.base import Readings
from medtest.report.console import efr_view, gates_view, one_line
from medtest.report.mlflow.registry import tell_registry
from medtest.report.mlflow.tracked import track, track_failure
from medtest.report.pages.comparison import REPORT
from medtest.report.pages.material import Material
from medtest.report.tracking import Parents
from medtest.report.views import View, make_results
from medtest.results.gating import gate_log
from medtest.results.records.revisions import MixedRevisions
from medtest.runner.folder import tables_are_stale, write_manifest
from medtest.runner.reporting import signals
from medtest.runner.reporting.outcome import RunOutcome
from medtest.suite.model import Invocation, Suite
from medtest.suite.sharding import Shard


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What came out of a run.

    Attributes:
        code: The run's exit code.
        materials: Each system's tables and what its report shows, in the suite's order.
        reports: Each system's ``report.html``.
        comparison: The page that sets the systems side by side; None for a single one that is not of a series.
        parents: MLflow's parent runs; hand them to the next job of a sweep. None when nothing was tracked.
        renderables: What the terminal shows, in order.
        told: What the registry of models was told.
        problems: What went wrong without harm to the results (MLflow was not reached).
        note: One line for the summary of a sweep.
    """

    code: ExitCode
    materials: tuple[Material, ...] = ()
    reports: tuple[Path, ...] = ()
    comparison: Path | None = None
    parents: Parents | None = None
    renderables: tuple[RenderableType, ...] = ()
    told: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    note: str = ""


def finish(
    suite: Suite,
    invocation: Invocation,
    outcome: RunOutcome,
    *,
    view: str = "",
    own: Suite | None = None,
    readings: Mapping[str, Readings] | None = None,
    parents: Parents | None = None,
    sweep: bool = False,
    phase: Callable[[str], None] = lambda name: None,
) -> Finished:
    """Finish every system's folder: tables, gates, report, MLflow, manifest.

    What is shown are the cases asked for. Where a folder of any system holds others too (``outcome.asked``), or an
    oracle judges that is not the suite's own, all of it lies in a view of the folders.

    Call it while the folders' locks are held.

    Args:
        suite: The suite.
        invocation: How it was called.
        outcome: What the runner gave.
        view: Digest of the oracle where it is not the suite's own; tables and report then go to ``views/<digest>/``.
        own: The suite under its own oracle, for the folders' own tables, which are made anew where a case ran; with
            ``view`` and without it they are left as they are.
        readings: What another reader read of each system's records, by the system's name; a view of its own.
        parents: Parent runs that an earlier job of the sweep made.
        sweep: Whether more jobs follow, so that the parents stay open; end them with
            :func:`medtest.report.mlflow.tracked.close_parents`.
        phase: Is told what is done: "tables", "report", "tracking".

    Returns:
        What came out. An MLflow that cannot be reached is a problem told and exit code 4, never lost results.

    Raises:
        OutputProblem: Tables or reports cannot be written.
    """
    if outcome.interrupted:
        return _interrupted(suite, invocation, outcome, parents=parents, sweep=sweep)
    asked_for = View(
        suite=suite, digest=outcome.view or view, rejudged=bool(view), asked=outcome.asked, readings=readings or {}
    )
    codes, tracked = [outcome.stopped], parents
    told: list[str] = []
    problems = [words for one in outcome.systems if (words := gate_log.lost(one.folder))]
    try:
        made = [make_results(asked_for, invocation, outcome, phase)]
        # Gates are of what was asked: on the folders' own tables the last evaluation stands.
        alone = None if view and own is None else replace(own or suite, gates=())
        if asked_for.digest and alone is not None and any(tables_are_stale(one.folder) for one in outcome.systems):
            try:
                made.append(make_results(View(suite=alone, beside=True), invocation, outcome, phase))
            except MixedRevisions as error:  # cases that were not asked for and have no answer to judge
                problems.append(f"The folder's own tables stay as they are: {error}.")
        if invocation.track:
            signals.phase("tracking")
            phase("tracking")
            tracked = track(suite, invocation, outcome, made, parents=parents, sweep=sweep)
            told.extend(tell_registry(invocation, made[0].materials))
    except NotTracked as error:
        problems.append(str(error))
        codes.append(ExitCode.NOT_TRACKED)
    finally:
        for one in outcome.systems:
            write_manifest(one.folder)
    results = made[0]
    if any(one.error_percent > suite.max_error_percent for one in outcome.systems):
        codes.append(ExitCode.TOO_MANY_ERRORS)
    if any(not result.held for material in results.materials for result in material.tables.gates):
        codes.append(ExitCode.GATE_NOT_HELD)
    for result in (result for material in results.materials for result in material.tables.gates if result.unlike):
        problems.append(f"{result.sentence}.")
        codes.append(ExitCode.MISTAKE)
    shown = [efr_view(results.materials), gates_view(results.materials)] if results.materials else []
    return Finished(
        code=min(codes, key=SEVERITY_ORDER.index),
        materials=tuple(results.materials),
        reports=tuple(target / REPORT for target in results.targets),
        comparison=results.compared.page,
        parents=tracked,
        renderables=tuple(item for item in shown if item is not None),
        told=tuple(told),
        problems=tuple(problems),
        note="; ".join(one_line(material) for material in results.materials),
    )


def finish_shard(suite: Suite, shard: Shard, outcome: RunOutcome) -> Finished:
    """Say what became of a shard: its records are all that it makes; ``medtest merge`` makes tables of all shards.

    Args:
        suite: The suite.
        shard: The shard.
        outcome: What the runner gave.
    """
    codes = [ExitCode.INTERRUPTED if outcome.interrupted else outcome.stopped]
    if any(one.error_percent > suite.max_error_percent for one in outcome.systems):
        codes.append(ExitCode.TOO_MANY_ERRORS)
    done = sum(one.asked_finished for one in outcome.systems)
    asked = sum(one.asked for one in outcome.systems)
    return Finished(
        code=min(codes, key=SEVERITY_ORDER.index), note=f"shard {shard}: {done:,} of {asked:,} cases are finished"
    )


def _interrupted(
    suite: Suite, invocation: Invocation, outcome: RunOutcome, *, parents: Parents | None, sweep: bool
) -> Finished:
    """Mark an interrupted invocation FAILED in MLflow; its cases are kept and tables come with the next run."""
    tracked = parents
    problems: list[str] = []
    if invocation.track:
        try:
            tracked = track_failure(suite, invocation, "interrupted", parents=parents, sweep=sweep, outcome=outcome)
        except NotTracked as error:
            problems.append(str(error))
    done = sum(one.asked_finished for one in outcome.systems)
    planned = sum(one.asked for one in outcome.systems)
    return Finished(
        code=ExitCode.INTERRUPTED,
        parents=tracked,
        problems=tuple(problems),
        note=f"interrupted after {done:,} of {planned:,} cases",
    )
