"""``medtest tables``: scores, tables, reports and comparisons made again from records, without inference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from medtest.cli.terminal import say
from medtest.core.errors import ExitCode, OutputProblem, UserMistakes, typed_error
from medtest.core.files.paths import home, path_from_here
from medtest.report.console import efr_view, gates_view
from medtest.report.pages.comparison import write_comparison
from medtest.report.pages.material import Material
from medtest.report.views import remake, views_of
from medtest.results.gating import gate_log
from medtest.results.records.damage import damaged
from medtest.results.records.records_io import RECORDS, SHARDS
from medtest.results.records.revisions import MixedRevisions
from medtest.results.records.wanted import RUN_FILE
from medtest.runner.folder import OUTPUTS, SHARD_FOLDERS, VIEWS, check_format, write_manifest


def remake_tables(
    folder: Path, *, console: Console, reference: Path | None = None, junit: str = "", browser: str = "page"
) -> ExitCode:
    """Make the tables and reports of every run at or below ``folder`` again, with their views, and print them.

    If ``folder`` holds a whole suite (``outputs/<suite>`` or above), the page comparing its systems is also made again
    from each system's newest run, and for series the curves and tables of ``alpha_sigma/``.

    Args:
        folder: A run's folder or one above some.
        console: Console for the tables.
        reference: Folder of one run, of the system that classifiers' flips are relative to; None for each run's own.
        junit: ``cells`` or ``cases``, the unit of a test case in each run's ``junit.xml``; "" writes no such file.
        browser: ``page`` or ``folder``, the place of the pictures of each report's browser.

    Returns:
        ``GATE_FAILED`` when a gate of any run failed, else ``OK``.

    Raises:
        UserMistakes: There is no run's folder, files of one are damaged, or ``reference`` is not the folder of one run.
        OutputProblem: A folder cannot be written.
    """
    folder = typed_folder(folder)
    folders = current_runs(folder, command="medtest tables", console=console)
    if bad := [problem for run in folders for problem in damaged(run)]:
        raise UserMistakes(bad)
    beside = None if reference is None else _one_run(reference)
    materials: list[Material] = []
    views: list[Material] = []
    for run in folders:
        try:
            materials.append(remake(run, reference=beside, junit=junit, browser=browser))
        except MixedRevisions as error:
            if len(folders) == 1:
                raise
            say(console, f"Left out: {error}")
            continue
        view_names, lost = views_of(run)
        views += [remake(run, view=view, reference=beside, junit=junit, browser=browser) for view in view_names]
        write_manifest(run)
        if words := gate_log.lost(run):
            say(console, words)
        for written in (materials[-1], *(view_material for view_material in views if view_material.folder == run)):
            say(console, f"{written.target}/report.html")
        for view in lost:
            say(console, f"{run}: view {view[:12]} is unchanged, since its judge's readings are missing; run it again.")
    for page in _compare(folder, materials, views):
        say(console, str(page))
    for begun in _begun(folder):
        say(
            console, f"Left out: {begun} was interrupted before its first tables; the command of that run continues it."
        )
    for shown in (efr_view(materials), gates_view(materials)):
        if shown is not None:
            console.print(shown)
    held = all(result.held for material in materials for result in material.tables.gates)
    return ExitCode.OK if held else ExitCode.GATE_FAILED


def _one_run(reference: Path) -> Path:
    runs = runs_below(reference)
    if len(runs) == 1:
        return runs[0]
    allowed = "the folder of one run" + (f", for example {runs[0]}" if runs else f", with {RUN_FILE} and records")
    raise typed_error("--reference", str(reference), allowed)


def _compare(folder: Path, materials: Sequence[Material], views: Sequence[Material]) -> list[Path]:
    """Make the comparisons of every suite at or below ``folder``, one for each view; return the pages."""
    suites: dict[Path, list[Material]] = {}
    above = folder.resolve()
    for material in materials:
        suite = material.folder.resolve().parent.parent
        if suite.is_relative_to(above) and suite.name == material.wanted.suite and suite.parent.name == OUTPUTS:
            suites.setdefault(suite, []).append(material)
    pages = []
    for suite, of_suite in suites.items():
        newest = _newest(of_suite)
        runs = {material.folder for material in newest}
        by_view: dict[str, list[Material]] = {"": newest}
        for material in views:
            if material.folder in runs:
                by_view.setdefault(material.view, []).append(material)
        for view, shown in by_view.items():
            ordered = _newest(shown)
            compared = write_comparison(ordered, suite.parent.parent, view)
            pages += [] if compared.page is None else [compared.page]
    return pages


def _newest(materials: Sequence[Material]) -> list[Material]:
    """Return the latest finished run of each system, in the order of the suite's systems."""
    by_system: dict[str, Material] = {}
    for material in sorted(materials, key=lambda candidate: str(candidate.run.get("finished_at", ""))):
        by_system[material.system] = material
    named = max((material.wanted.systems for material in by_system.values()), key=len)
    place = {name: number for number, name in enumerate(named)}
    return sorted(by_system.values(), key=lambda material: place.get(str(material.run.get("system_id")), len(place)))


def _begun(folder: Path) -> list[Path]:
    """Return folders with records of a run that has no tables yet."""
    folders = {path.parent.parent for path in folder.rglob(f"{SHARDS}/shard-*.parquet")}
    own = (path for path in folders if SHARD_FOLDERS not in path.relative_to(folder).parts)
    return sorted(path for path in own if not (path / RUN_FILE).is_file() and ".old-" not in path.name)


def typed_folder(folder: Path) -> Path:
    """Return a typed folder or, if it has no runs, the one below ``MEDTEST_HOME`` that has."""
    below = home() / folder
    return below if not runs_below(folder) and runs_below(below) else folder


def some_runs_below(folder: Path, *, command: str) -> list[Path]:
    """Return the run folders below a typed folder, see :func:`runs_below`.

    Args:
        folder: The folder.
        command: The command it was typed for.

    Raises:
        UserMistakes: There is no run.
    """
    if folders := runs_below(typed_folder(folder)):
        return folders
    outputs = home() / OUTPUTS
    fix = f"{command} {path_from_here(outputs)}" if runs_below(outputs) else "medtest run suite=polyp_seg creates one"
    problem = f"{folder}, which {'holds no run' if folder.is_dir() else 'is not a folder'}"
    raise typed_error(
        "FOLDER", problem, f"a folder with {RUN_FILE} and records, or one that contains such folders", fix
    )


def current_runs(folder: Path, *, command: str, console: Console) -> list[Path]:
    """Return the run folders below a typed folder that this version reads; others are left out with a notice.

    Args:
        folder: The folder.
        command: The command it was typed for.
        console: Console for the notices.

    Raises:
        UserMistakes: There is no run.
        OutputProblem: All runs have another format.
    """
    runs = some_runs_below(folder, command=command)
    current: list[Path] = []
    for run in runs:
        try:
            check_format(run)
        except OutputProblem as error:
            if len(runs) == 1:
                raise
            say(console, f"Left out: {error}")
        else:
            current.append(run)
    if not current:
        raise OutputProblem(f"{path_from_here(folder)} holds only results of other formats")
    return current


def runs_below(folder: Path) -> list[Path]:
    """Return run folders, except views, MLflow's copies and folders moved aside by ``fresh=true``."""
    folders = [path.parent for path in folder.rglob(RUN_FILE)] if folder.is_dir() else []
    return sorted(
        path
        for path in folders
        if not {VIEWS, SHARD_FOLDERS, "mlruns"} & set(path.relative_to(folder).parts)
        and ".old-" not in path.name
        and ((path / RECORDS).is_file() or any((path / SHARDS).glob("shard-*.parquet")))
    )
