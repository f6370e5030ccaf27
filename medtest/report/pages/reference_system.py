"""Look-up of the system that flip probabilities and errors are relative to: ``reference=`` of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtest.core.errors import UserMistakes, nearest_name, typed_error
from medtest.core.tasks.base import Task
from medtest.report.pages.material import read_run
from medtest.results.records.judged import make_columns
from medtest.results.records.records_io import RECORDS, Records
from medtest.runner.records.case_set import CaseSet
from medtest.suite.model import Suite

KEY = "reference"


def find_reference(name: str, *, suite: Suite, home: Path, folders: Mapping[str, Path]) -> Path:
    """Return the folder of the reference system.

    Args:
        name: Id of a system of this run, a folder of results, or a system that ran under this suite earlier.
        suite: The suite.
        home: Folder that holds ``outputs/``.
        folders: Folders of this run's systems by id.

    Raises:
        UserMistakes: There is no such system or folder, the folder holds several runs, or the task has no labels.
    """
    if not suite.task.labels:
        raise _mistake(name, "no reference: only classifiers have flips and corruption errors", "remove reference=")
    if name in folders:
        return folders[name]
    path = Path(name).expanduser()
    earlier = home / "outputs" / suite.name / name
    if path.is_dir():
        runs = runs_in(path)
        if len(runs) == 1:
            return runs[0]
        allowed = f"a folder with a single run, such as {runs[0]}" if runs else "a folder with the records of a run"
        raise _mistake(name, allowed)
    if "/" not in name and "\\" not in name:
        below = runs_in(earlier) if earlier.is_dir() else []
        # A run that continues under another name stays in its first folder.
        below += [run for run in runs_in(earlier.parent) if read_run(run).get("system") == name]
        if below:
            return max(below, key=lambda run: (run / RECORDS).stat().st_mtime)
    names = list(folders)
    raise typed_error(
        KEY,
        name,
        f"a system of this run ({', '.join(names)}), one that ran under {suite.name}, or a run's folder",
        nearest=nearest_name(name, names),
    )


def read_reference(folder: Path, task: Task, asked: CaseSet | None = None) -> Any:
    """Return the reference values of a system (:meth:`reference`), or None without answers.

    Args:
        folder: Folder from :func:`find_reference`.
        task: The suite's task.
        asked: Compared cases; None for all.

    Raises:
        OutputProblem: Its records cannot be read.
    """
    return task.tables.reference(Records.read(folder, make_columns(folder), asked).parted()[0])


def runs_in(folder: Path) -> list[Path]:
    """Return the folders with records at or below a folder, except views, copies of MLflow and old folders."""
    folders = sorted(path.parent for path in folder.rglob(RECORDS))
    return [path for path in folders if not {"views", "mlruns"} & set(path.parts) and ".old-" not in path.name]


def _mistake(found: str, allowed: str, fix: str = "") -> UserMistakes:
    return typed_error(KEY, found, allowed, fix)
