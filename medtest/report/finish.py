"""Processing of finished records: tables, gates, reports, manifests and MLflow for every system of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import RenderableType

from medtest.core.errors import SEVERITY_ORDER, ExitCode, NotTracked
from medtest.readers.base import Readings
from medtest.report.console import efr_view, gates_view, one_line
from medtest.report.mlflow.registry import update_registry
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
    """Results of a finished run.

    Attributes:
        code: Exit code.
        materials: Report material of each system, in the suite's order.
        reports: ``report.html`` of each system.
        comparison: Page that compares the systems; None for a single one that is not of a series.
        parents: MLflow's parent runs, for the next job of a sweep; None when nothing was tracked.
        renderables: Terminal output, in order.
        notices: Notices about the model registry.
        problems: Problems that leave the results intact, such as an unreachable MLflow.
        note: One line for the summary of a sweep.
    """

    code: ExitCode
    materials: tuple[Material, ...] = ()
    reports: tuple[Path, ...] = ()
    comparison: Path | None = None
    parents: Parents | None = None
    renderables: tuple[RenderableType, ...] = ()
    notices: tuple[str, ...] = ()
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

    The report covers the requested cases. If any system's folder holds other cases too (``outcome.asked``), or the
    oracle is not the suite's own, the output goes to a view of the folders. Call it while the folders' locks are held.

    Args:
        suite: The suite.
        invocation: Options of the call.
        outcome: Result of the runner.
        view: Digest of the oracle if it is not the suite's own; tables and report then go to ``views/<digest>/``.
        own: The suite under its own oracle, for the folders' own tables, which are remade where a case ran. Given
            ``view`` without it, they are left unchanged.
        readings: Readings by another reader of each system's records, by the system's name; these form a view.
        parents: Parent runs created by an earlier job of the sweep.
        sweep: Whether more jobs follow, so that the parents stay open; end them with
            :func:`medtest.report.mlflow.tracked.close_parents`.
        phase: Called with the name of each phase: "tables", "report", "tracking".

    Returns:
        The results. An unreachable MLflow is a problem with exit code 4 and never loses results.

    Raises:
        OutputProblem: Tables or reports cannot be written.
    """
    if outcome.interrupted:
        return _interrupted(suite, invocation, outcome, parents=parents, sweep=sweep)
    asked_for = View(
        suite=suite, digest=outcome.view or view, rejudged=bool(view), asked=outcome.asked, readings=readings or {}
    )
    codes, tracked = [outcome.stopped], parents
    notices: list[str] = []
    problems = [words for system in outcome.systems if (words := gate_log.lost(system.folder))]
    try:
        materials, compared = make_results(asked_for, invocation, outcome, phase)
        every = list(materials)
        # Gates apply to the requested cases; the folders' own tables keep their last evaluation.
        alone = None if view and own is None else replace(own or suite, gates=())
        if (
            asked_for.digest
            and alone is not None
            and any(tables_are_stale(system.folder) for system in outcome.systems)
        ):
            try:
                every += make_results(View(suite=alone, beside=True), invocation, outcome, phase)[0]
            except MixedRevisions as error:  # Unrequested cases without an answer to judge.
                problems.append(f"The folder's own tables are unchanged: {error}.")
        if invocation.track:
            signals.phase("tracking")
            phase("tracking")
            tracked = track(suite, invocation, outcome, every, compared, parents=parents, sweep=sweep)
            notices.extend(update_registry(invocation, materials))
    except NotTracked as error:
        problems.append(str(error))
        codes.append(ExitCode.NOT_TRACKED)
    finally:
        for system in outcome.systems:
            write_manifest(system.folder)
    if any(system.error_percent > suite.max_error_percent for system in outcome.systems):
        codes.append(ExitCode.TOO_MANY_ERRORS)
    if any(not result.held for material in materials for result in material.tables.gates):
        codes.append(ExitCode.GATE_FAILED)
    for result in (result for material in materials for result in material.tables.gates if result.unlike):
        problems.append(f"{result.sentence}.")
        codes.append(ExitCode.MISTAKE)
    shown = [efr_view(materials), gates_view(materials)] if materials else []
    return Finished(
        code=min(codes, key=SEVERITY_ORDER.index),
        materials=tuple(materials),
        reports=tuple(material.target / REPORT for material in materials),
        comparison=compared.page,
        parents=tracked,
        renderables=tuple(item for item in shown if item is not None),
        notices=tuple(notices),
        problems=tuple(problems),
        note="; ".join(one_line(material) for material in materials),
    )


def finish_shard(suite: Suite, shard: Shard, outcome: RunOutcome) -> Finished:
    """Return the outcome of a shard, which has records only; ``medtest merge`` makes tables of all shards.

    Args:
        suite: The suite.
        shard: The shard.
        outcome: Result of the runner.
    """
    codes = [ExitCode.INTERRUPTED if outcome.interrupted else outcome.stopped]
    if any(system.error_percent > suite.max_error_percent for system in outcome.systems):
        codes.append(ExitCode.TOO_MANY_ERRORS)
    done = sum(system.asked_finished for system in outcome.systems)
    requested = sum(system.asked for system in outcome.systems)
    return Finished(
        code=min(codes, key=SEVERITY_ORDER.index), note=f"shard {shard}: {done:,} of {requested:,} cases are finished"
    )


def _interrupted(
    suite: Suite, invocation: Invocation, outcome: RunOutcome, *, parents: Parents | None, sweep: bool
) -> Finished:
    """Mark an interrupted invocation FAILED in MLflow; its cases are kept, and the next run makes tables."""
    tracked = parents
    problems: list[str] = []
    if invocation.track:
        try:
            tracked = track_failure(suite, invocation, "interrupted", parents=parents, sweep=sweep, outcome=outcome)
        except NotTracked as error:
            problems.append(str(error))
    done = sum(system.asked_finished for system in outcome.systems)
    planned = sum(system.asked for system in outcome.systems)
    return Finished(
        code=ExitCode.INTERRUPTED,
        parents=tracked,
        problems=tuple(problems),
        note=f"interrupted after {done:,} of {planned:,} cases",
    )
