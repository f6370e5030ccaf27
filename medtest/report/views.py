"""Tables and report of each system under one view: all cases of its folder, or the cases and oracle of a call."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from medtest.readers.base import Readings
from medtest.report.charts.reliance import PICTURE, picture
from medtest.report.ci import JUNIT, RESULT, SUMMARY
from medtest.report.ci.junit import write_junit
from medtest.report.ci.result_file import result_of
from medtest.report.ci.summary import summary_text
from medtest.report.compared.gating import judge_paired
from medtest.report.pages.browser.data import browser_of
from medtest.report.pages.browser.data import write_pictures as write_browser
from medtest.report.pages.comparison import REPORT, Compared, write_comparison
from medtest.report.pages.material import Material, read_run
from medtest.report.pages.page import report_html
from medtest.report.pages.reference_system import find_reference, read_reference
from medtest.report.replayed import write_pictures
from medtest.results.gating import gate_log
from medtest.results.records.judged import compared_records
from medtest.results.records.reading import READINGS, kept_readings, readings_text
from medtest.results.records.records_io import RECORDS
from medtest.results.records.wanted import SUITE_FILE, Wanted
from medtest.results.tables import FOLDER, Tables, make_tables
from medtest.runner.folder import note_tables, output_problems, view_folder, write_run, writing, writing_text
from medtest.runner.records.case_set import CaseSet
from medtest.runner.reporting.outcome import RunOutcome, SystemOutcome
from medtest.suite.checking.exclusion import COPY as EXCLUDED
from medtest.suite.model import Invocation, PairedGate, Suite

_JUDGING = ("oracles", "judge.", "judge=")
"""Prefixes of tokens that decide how records are judged, but not which records a folder holds."""
_CHOOSING = ("limit=", "only=")
"""Prefixes of tokens that select cases."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Content of tables and reports.

    Attributes:
        suite: The suite, under the oracle that judges.
        digest: Digest of the view; "" for the folders' own tables.
        rejudged: Whether the records are judged again, because the oracle is not the suite's own or another reader is
            used.
        asked: The cases; None for all of a folder.
        readings: Readings by another reader of each system's records, by the system's name.
        beside: Whether the call requested another view, and this one is the folders' own.
    """

    suite: Suite
    digest: str = ""
    rejudged: bool = False
    asked: CaseSet | None = None
    readings: Mapping[str, Readings] = field(default_factory=dict)
    beside: bool = False


def make_results(
    view: View, invocation: Invocation, outcome: RunOutcome, phase: Callable[[str], None] = lambda name: None
) -> tuple[list[Material], Compared]:
    """Write tables and report of every system under a view, and the page that compares them.

    Args:
        view: The view.
        invocation: Options of the call.
        outcome: Result of the runner.
        phase: Called with the name of each phase.

    Returns:
        Material of each system, in the suite's order, and their comparison.

    Raises:
        OutputProblem: Something cannot be written.
    """
    reference = _reference(view.suite, invocation, outcome)
    materials = []
    for system in outcome.systems:
        materials.append(_system(view, invocation, outcome, system, reference, phase))
        if not view.digest:
            note_tables(system.folder)
    return materials, write_comparison(materials, invocation.home, view.digest)


def remake(
    folder: Path, *, view: str = "", reference: Path | None = None, junit: str = "", browser: str = "page"
) -> Material:
    """Make tables and report of one finished folder again from its records alone, without MLflow or a system.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
        view: Digest of one of its views; "" for its own tables.
        reference: Folder of the system that a classifier's flips are relative to; None for the run's own, if any.
        junit: ``cells`` or ``cases``, the unit of a test case in ``junit.xml``; "" writes no such file.
        browser: As in :attr:`~medtest.report.pages.material.Material.browser`.

    Returns:
        Material of the report.

    Raises:
        OutputProblem: The folder holds no records or no ``suite.yaml``, or cannot be written.
    """
    from medtest.results.records.rejudging import oracle_in

    target = view_folder(folder, view)
    run = read_run(target)
    if view:
        run = {**read_run(folder), "command": "", **run}
    shown = Wanted.from_folder(target, str(run.get("system_id") or ""))
    cases = CaseSet.read(target) if view else None
    rejudged = bool(view) and bool(run["rejudged"])
    oracle = oracle_in(target) if rejudged else None
    readings = kept_readings(target) if rejudged else None
    beside = reference or _kept_reference(folder, run)
    tables = make_tables(
        folder,
        shown,
        reference=None if beside is None else read_reference(beside, shown.task, cases),
        oracle=oracle,
        readings=readings,
        asked=cases,
    )
    tables.write(target)
    if view:
        run |= {"cases_finished": tables.counts.cases}
    material = Material(
        folder=folder,
        wanted=shown,
        tables=tables,
        run=run,
        command=str(run.get("command", "")),
        view=view,
        rejudged=rejudged,
        asked=cases,
        browser=browser,
        read=partial(compared_records, folder, shown, oracle, readings, cases),
    )
    _publish(material, "medtest tables", junit)
    if not view:
        note_tables(folder)
    return material


def views_of(folder: Path) -> tuple[list[str], list[str]]:
    """Return the views of a folder that can be made again, and those that cannot, as their readings were not kept.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
    """
    targets = sorted(path.parent for path in view_folder(folder, "x").parent.glob(f"*/{SUITE_FILE}"))
    lost = [path.name for path in targets if _judged(path) and kept_readings(path) is None]
    return [path.name for path in targets if path.name not in lost], lost


def _judged(target: Path) -> bool:
    """Return True if a reader read a view's answers, by its readings (complete or not) or its table."""
    name = Wanted.from_folder(target).task.tables.readings
    return (target / READINGS).is_file() or (bool(name) and (target / FOLDER / name).is_file())


def _system(
    view: View,
    invocation: Invocation,
    outcome: RunOutcome,
    outcome_of_system: SystemOutcome,
    reference: Path | None,
    phase: Callable[[str], None],
) -> Material:
    suite, target = view.suite, view_folder(outcome_of_system.folder, view.digest)
    readings, shown = view.readings.get(outcome_of_system.record_name), Wanted.of(suite, outcome_of_system.system)
    oracle = suite.build_oracle() if view.rejudged else None
    with output_problems(target / REPORT):
        target.mkdir(parents=True, exist_ok=True)
    if suite.exclude is not None:
        _write_text(target / EXCLUDED, suite.exclude.text())
    of_whom = f" of {outcome_of_system.record_name}" if len(outcome.systems) > 1 else ""
    phase(f"tables{of_whom}")
    tables = make_tables(
        outcome_of_system.folder,
        shown,
        reference=None if reference is None else read_reference(reference, shown.task, view.asked),
        oracle=oracle,
        readings=readings,
        asked=view.asked,
        shared=invocation.shared,
    )
    read = partial(compared_records, outcome_of_system.folder, shown, oracle, readings, view.asked)
    if any(isinstance(gate, PairedGate) for gate in suite.gates):
        tables = replace(
            tables, gates=(*tables.gates, *judge_paired(suite.gates, read(), invocation.home, outcome_of_system.folder))
        )
    tables.write(target)
    phase(f"report{of_whom}")
    undrawn = _draw(suite, invocation, target, tables, outcome_of_system.record_name)
    if view.digest:
        _write_text(target / SUITE_FILE, yaml.safe_dump(json.loads(json.dumps(suite.composed)), sort_keys=False))
        if view.asked is not None:
            view.asked.write(target)
        if readings is not None:
            _write_text(target / READINGS, readings_text(readings))
    material = Material(
        folder=outcome_of_system.folder,
        wanted=shown,
        tables=tables,
        run=_account(view, invocation, outcome_of_system, tables, reference),
        notices=[
            *(line for line in outcome.notices if not _of_a_system(line, outcome, but=outcome_of_system)),
            *undrawn,
        ],
        command=_command(view, invocation, outcome_of_system),
        view=view.digest,
        rejudged=view.rejudged,
        asked=view.asked,
        browser=invocation.browser,
        read=read,
    )
    _publish(material, invocation.command, "" if view.beside else invocation.junit)
    return material


def _draw(suite: Suite, invocation: Invocation, target: Path, tables: Tables, system: str) -> list[str]:
    """Draw the pictures that the task defines on its tables; return messages about failures."""
    return [
        words
        for kind, pictures in tables.own.pictures(system)
        for words in write_pictures(suite, invocation, target, pictures, kind, system)
    ]


def _publish(material: Material, command: str, junit: str | None) -> None:
    """Append the results of the gates to the folder's log; write the report and the files for CI."""
    gate_log.append(
        material.folder,
        material.tables.gates,
        suite=material.wanted.suite,
        version=material.wanted.version,
        view=material.view,
        shown=material.coverage,
        cases=material.tables.counts.cases,
        command=command,
    )
    beside = material.target if material.browser == "folder" else None
    if beside is None:
        write_browser(material.target, {})
    records = material.tables.shown if beside is None else None
    browser = browser_of([material], [records or material.records()], beside=beside)
    _write_text(material.target / REPORT, report_html(material, browser))
    if svg := picture(material.tables.reliance):
        _write_text(material.target / PICTURE, svg)
    _write_text(material.target / SUMMARY, summary_text(material))
    result = json.dumps(result_of(material), indent=2, ensure_ascii=False, allow_nan=False)
    _write_text(material.target / RESULT, f"{result}\n")
    if junit:
        with writing(material.target / JUNIT) as file:
            write_junit(material, file, cases=junit == "cases")


# --- run.json of a view ----------------------------------------------------------------------------------------------


def _account(
    view: View,
    invocation: Invocation,
    system: SystemOutcome,
    tables: Tables,
    reference: Path | None,
) -> dict[str, Any]:
    """Update ``run.json`` of the folder, and write that of a view; return the one shown in the report."""
    own = read_run(system.folder)
    beside = None if reference is None else Path(os.path.relpath(reference, system.folder)).as_posix()
    if not view.digest:
        own |= {"command": _command(view, invocation, system), "reference": beside}
        if own.get("suite"):
            write_run(system.folder, own)
        return own if view.beside else {**own, "error_percent": system.error_percent}
    target = view_folder(system.folder, view.digest)
    shared = {key: value for key, value in own.items() if key != "verdicts" and not key.startswith("mlflow_")}
    content = shared | {
        "view": view.digest,
        "rejudged": view.rejudged,
        "command": invocation.command,
        "reference": beside,
        "error_percent": system.error_percent,
        "mlflow_run_id": None,
        **{key: value for key, value in read_run(target).items() if key.startswith("mlflow_")},
    }
    if view.asked is not None:
        content |= {
            "partial": tables.counts.cases < system.planned,
            "cases_finished": tables.counts.cases,
            "cases_asked": view.asked.count,
            "cases_reused": system.cases_reused,
            "reused_from": system.reused_from,
        }
    write_run(target, content)
    if own and not own.get("command"):  # for the report that medtest tables makes of the folder alone
        write_run(system.folder, {**own, "command": _without_view(invocation.command, system), "reference": beside})
    return content


def _command(view: View, invocation: Invocation, system: SystemOutcome) -> str:
    """Return the command that reproduces a view."""
    return _without_view(invocation.command, system) if view.beside else invocation.command


def _without_view(command: str, system: SystemOutcome) -> str:
    """Return the command that reproduces the folder's content, judged by the suite's own oracle.

    If the folder holds more than the requested cases, tokens that select cases are dropped.
    """
    left_out = (*_JUDGING, *_CHOOSING) if system.finished > system.asked_finished else _JUDGING
    return shlex.join(token for token in shlex.split(command) if not token.lstrip("+~").startswith(left_out))


def _reference(suite: Suite, invocation: Invocation, outcome: RunOutcome) -> Path | None:
    """Return the folder of the system that classifiers' flips are relative to, or None."""
    if invocation.reference is None:
        return None
    folders = {system.record_name: system.folder for system in outcome.systems} | {
        system.system: system.folder for system in outcome.systems
    }
    return find_reference(invocation.reference, suite=suite, home=invocation.home, folders=folders)


def _kept_reference(folder: Path, run: Mapping[str, Any]) -> Path | None:
    """Return the reference recorded by a run, if it still exists."""
    named = run.get("reference")
    reference = folder / str(named) if named else None
    return reference if reference is not None and (reference / RECORDS).is_file() else None


def _of_a_system(line: str, outcome: RunOutcome, *, but: SystemOutcome) -> bool:
    """Return True if a notice is shown elsewhere in the report, or concerns another system than ``but``."""
    others = (other for other in outcome.systems if other is not but)
    return line in {but.reuse, *(system.notice for system in outcome.systems)} or any(
        line.startswith(f"{other.record_name}: ") for other in others
    )


def _write_text(path: Path, text: str) -> None:
    with writing_text(path) as file:
        file.write(text)
