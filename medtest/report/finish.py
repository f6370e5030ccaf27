"""From records to what people read: tables, gates, reports, manifests, MLflow, for every system of a run."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from rich.console import RenderableType

from medtest.errors import SEVERITY_ORDER, ExitCode, NotTracked
from medtest.report.answer_sheets import write_sheets
from medtest.report.comparison import REPORT, write_comparison
from medtest.report.console import efr_view, gates_view, one_line
from medtest.report.film_strips import write_films
from medtest.report.material import Material, read_run
from medtest.report.page import report_html
from medtest.report.reference_system import find_reference, read_reference
from medtest.report.tracked import Results, track, track_failure, write_run
from medtest.results.judged import compared_records
from medtest.results.records_io import RECORDS
from medtest.results.tables import make_tables
from medtest.results.wanted import SUITE_FILE, Wanted
from medtest.runner.folder import output_problems, write_manifest, writing_text
from medtest.runner.outcome import RunOutcome, SystemOutcome
from medtest.suite.exclusion import COPY as EXCLUDED
from medtest.suite.model import Invocation, Suite
from medtest.systems.answering.judge import Readings
from medtest.tracking import Parents

VIEWS = "views"


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
        problems: What went wrong without harm to the results (MLflow was not reached).
        note: One line for the summary of a sweep.
    """

    code: ExitCode
    materials: tuple[Material, ...] = ()
    reports: tuple[Path, ...] = ()
    comparison: Path | None = None
    parents: Parents | None = None
    renderables: tuple[RenderableType, ...] = ()
    problems: tuple[str, ...] = ()
    note: str = ""


def finish(
    suite: Suite,
    invocation: Invocation,
    outcome: RunOutcome,
    *,
    view: str = "",
    readings: Mapping[str, Readings] | None = None,
    parents: Parents | None = None,
    sweep: bool = False,
    phase: Callable[[str], None] = lambda name: None,
) -> Finished:
    """Finish every system's folder: tables, gates, report, MLflow, manifest.

    Call it while the folders' locks are held.

    Args:
        suite: The suite.
        invocation: How it was called.
        outcome: What the runner gave.
        view: Digest of the oracle where it is not the suite's own; tables and report then go to ``views/<digest>/``.
        readings: What a judge read of each system's answers, by the system's name; a view of its own.
        parents: Parent runs that an earlier job of the sweep made.
        sweep: Whether more jobs follow, so that the parents stay open; end them with
            :func:`medtest.report.tracked.close_parents`.
        phase: Is told what is done: "tables", "report", "tracking".

    Returns:
        What came out. An MLflow that cannot be reached is a problem told and exit code 4, never lost results.

    Raises:
        OutputProblem: Tables or reports cannot be written.
    """
    if outcome.interrupted:
        return _interrupted(suite, invocation, outcome, parents=parents, sweep=sweep)
    results = Results()
    reference = _reference(suite, invocation, outcome)
    for one in outcome.systems:
        read = (readings or {}).get(one.record_name)
        material, target = _system(suite, invocation, outcome, one, view, reference, read, phase)
        results.materials.append(material)
        results.targets.append(target)
    results.compared = write_comparison(results.materials, results.targets, invocation.home, view)
    codes = [outcome.stopped]
    if any(one.error_percent > suite.max_error_percent for one in outcome.systems):
        codes.append(ExitCode.TOO_MANY_ERRORS)
    if any(not result.held for material in results.materials for result in material.tables.gates):
        codes.append(ExitCode.GATE_NOT_HELD)
    problems: list[str] = []
    tracked = parents
    try:
        if invocation.track:
            phase("tracking")
            tracked = track(suite, invocation, outcome, results, parents=parents, sweep=sweep)
    except NotTracked as error:
        problems.append(str(error))
        codes.append(ExitCode.NOT_TRACKED)
    finally:
        for one in outcome.systems:
            write_manifest(one.folder)
    shown = [efr_view(results.materials), gates_view(results.materials)] if results.materials else []
    return Finished(
        code=min(codes, key=SEVERITY_ORDER.index),
        materials=tuple(results.materials),
        reports=tuple(target / REPORT for target in results.targets),
        comparison=results.compared.page,
        parents=tracked,
        renderables=tuple(item for item in shown if item is not None),
        problems=tuple(problems),
        note="; ".join(one_line(material) for material in results.materials),
    )


def remake(folder: Path, *, reference: Path | None = None) -> Material:
    """Make tables and report of one finished folder again from its records alone, without MLflow or a system.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
        reference: Folder of the system that a classifier's flips are relative to; None for the run's own, if any.

    Returns:
        What the report shows.

    Raises:
        OutputProblem: The folder holds no records or no ``suite.yaml``, or cannot be written.
    """
    wanted = Wanted.from_folder(folder)
    run = read_run(folder)
    beside = reference or _kept_reference(folder, run)
    tables = make_tables(folder, wanted, reference=None if beside is None else read_reference(beside))
    tables.write(folder)
    material = Material(folder=folder, wanted=wanted, tables=tables, run=run, command=str(run.get("command", "")))
    _write_text(folder / REPORT, report_html(material))
    write_manifest(folder)
    return material


def _reference(suite: Suite, invocation: Invocation, outcome: RunOutcome) -> Path | None:
    """Return the folder of the system that classifiers' flips are relative to, or None."""
    if invocation.reference is None:
        return None
    folders = {one.record_name: one.folder for one in outcome.systems} | {
        one.system: one.folder for one in outcome.systems
    }
    return find_reference(invocation.reference, suite=suite, home=invocation.home, folders=folders)


def _kept_reference(folder: Path, run: Mapping[str, Any]) -> Path | None:
    """Return the reference that a run noted, where it is still there."""
    named = run.get("reference")
    found = folder / str(named) if named else None
    return found if found is not None and (found / RECORDS).is_file() else None


def _system(
    suite: Suite,
    invocation: Invocation,
    outcome: RunOutcome,
    one: SystemOutcome,
    view: str,
    reference: Path | None,
    readings: Readings | None,
    phase: Callable[[str], None],
) -> tuple[Material, Path]:
    target = one.folder / VIEWS / view if view else one.folder
    wanted = Wanted.of(suite, one.system)
    with output_problems(target / REPORT):
        target.mkdir(parents=True, exist_ok=True)
    if suite.exclude is not None:
        _write_text(target / EXCLUDED, suite.exclude.text())
    oracle = suite.build_oracle() if view else None
    of_whom = f" of {one.record_name}" if len(outcome.systems) > 1 else ""
    phase(f"tables{of_whom}")
    tables = make_tables(
        one.folder,
        wanted,
        reference=None if reference is None else read_reference(reference),
        oracle=oracle,
        readings=readings,
    )
    tables.write(target)
    phase(f"report{of_whom}")
    films = () if tables.labels is None else tables.labels.films
    undrawn = write_films(suite, invocation, one.folder, films, one.record_name)
    if tables.answers is not None:
        undrawn += write_sheets(suite, invocation, one.folder, tables.answers.worst, one.record_name)
    if view:
        _write_text(target / SUITE_FILE, yaml.safe_dump(json.loads(json.dumps(suite.composed)), sort_keys=False))
    run = read_run(one.folder)
    if run and not (view and run.get("command")):  # for the report that medtest tables makes from the folder alone
        run["command"] = _without_view(invocation.command) if view else invocation.command
        run["reference"] = None if reference is None else Path(os.path.relpath(reference, one.folder)).as_posix()
        write_run(one.folder, run)
    run["error_percent"] = one.error_percent
    material = Material(
        folder=one.folder,
        wanted=wanted,
        tables=tables,
        run=run,
        notices=[*(line for line in outcome.notices if not _of_a_system(line, outcome, but=one)), *undrawn],
        command=invocation.command,
        view=view,
        read=partial(compared_records, one.folder, wanted, oracle, readings),
    )
    _write_text(target / REPORT, report_html(material))
    return material, target


def _without_view(command: str) -> str:
    """Return the command that judges as the suite does."""
    views = ("oracles", "judge.", "judge=")
    return shlex.join(token for token in shlex.split(command) if not token.lstrip("+~").startswith(views))


def _of_a_system(line: str, outcome: RunOutcome, *, but: SystemOutcome) -> bool:
    """Whether a notice is shown elsewhere in the report, or speaks of another system than ``but``."""
    others = (other for other in outcome.systems if other is not but)
    return line in {but.reuse, *(system.notice for system in outcome.systems)} or any(
        line.startswith(f"{other.record_name}: ") for other in others
    )


def _write_text(path: Path, text: str) -> None:
    with writing_text(path) as file:
        file.write(text)


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
    done = sum(one.finished for one in outcome.systems)
    planned = sum(one.planned for one in outcome.systems)
    return Finished(
        code=ExitCode.INTERRUPTED,
        parents=tracked,
        problems=tuple(problems),
        note=f"interrupted after {done:,} of {planned:,} cases",
    )
