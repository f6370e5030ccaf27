"""Look-up of a finished run by folder, ``suite/system`` or MLflow run id."""

from __future__ import annotations

import re
from pathlib import Path

from medtest.core.errors import UserMistakes, nearest_name, typed_error
from medtest.report.pages.material import read_run
from medtest.report.pages.reference_system import runs_in
from medtest.report.pages.words import counted
from medtest.results.records.records_io import RECORDS
from medtest.results.records.wanted import RUN_FILE
from medtest.runner.folder import OUTPUTS, VIEWS

_MLFLOW_ID = re.compile(r"[0-9a-f]{32}")


def find_run(name: str, home: Path, *, key: str, but: Path | None = None) -> Path | None:
    """Return the folder of a finished run.

    Args:
        name: A folder that holds one run; ``suite/system`` for its newest run; or the id of an MLflow run recorded in a
            folder of ``outputs/``.
        home: Folder that holds ``outputs/``.
        key: Key that the mistake names.
        but: The run being judged, which ``suite/system`` never matches.

    Returns:
        None for an MLflow run id that no folder here records; an MLflow store may have it.

    Raises:
        UserMistakes: There is no such run, or the folder holds several.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return _only(path, name, key)
    if _MLFLOW_ID.fullmatch(name):
        return _of_mlflow(home / OUTPUTS, name)
    suite, _, system = name.partition("/")
    if system and ".." not in name and (home / OUTPUTS / suite).is_dir():
        below = runs_in(home / OUTPUTS / suite)
        below = [run for run in below if but is None or run.resolve() != but.resolve()]
        matches = [run for run in below if system in (run.parent.name, read_run(run).get("system"))]
        if matches:
            return max(matches, key=lambda run: (run / RECORDS).stat().st_mtime)
    raise no_run(name, home, key)


def run_here(name: str, home: Path, *, key: str, but: Path | None = None) -> Path:
    """Return the folder of a finished run on this machine, as :func:`find_run` does.

    Raises:
        UserMistakes: There is no such run, or it may exist only in an MLflow store.
    """
    folder = find_run(name, home, key=key, but=but)
    if folder is None:
        raise typed_error(
            key, name, "the id of an MLflow run whose folder is in outputs/", "type its folder or SUITE/SYSTEM"
        )
    return folder


def no_run(name: str, home: Path, key: str) -> UserMistakes:
    """Return the error for a name that matches no run."""
    names = sorted({f"{run.parent.parent.name}/{run.parent.name}" for run in runs_in(home / OUTPUTS)})
    shown = f" ({', '.join(names[:8])}{' …' if len(names) > 8 else ''})" if names else ""
    return typed_error(
        key,
        name,
        f"a run's folder, SUITE/SYSTEM of a finished run{shown}, or the id of an MLflow run",
        "make one: medtest run suite=SUITE model=MODEL",
        nearest=nearest_name(name, names),
    )


def _only(folder: Path, name: str, key: str) -> Path:
    runs = [run.resolve() for run in runs_in(folder)]
    if len(runs) == 1:
        return runs[0]
    allowed = (
        f"a folder with a single run, such as {runs[0]}" if runs else f"a folder with {RUN_FILE} and records of a run"
    )
    if not runs and folder.resolve().parent.name == VIEWS:
        allowed = f"{folder.resolve().parents[1]}: all views of a run share its records, so name the run"
    raise typed_error(key, f"{name}, with {counted(len(runs), 'run')}", allowed)


def _of_mlflow(outputs: Path, run_id: str) -> Path | None:
    for run in runs_in(outputs):
        views = (run / VIEWS).glob(f"*/{RUN_FILE}")
        if any(read_run(folder).get("mlflow_run_id") == run_id for folder in (run, *(path.parent for path in views))):
            return run
    return None
