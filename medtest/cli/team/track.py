"""``medtest track``: sends MLflow what it lacks of finished runs, once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from medtest.cli.tables import runs_below
from medtest.cli.terminal import say
from medtest.errors import Mistake
from medtest.paths import home
from medtest.report.material import Material, read_run
from medtest.report.mlflow.headline import headline_of
from medtest.report.mlflow.tracked import content_of, say_above, send
from medtest.report.views import remake, views_of
from medtest.results.records.wanted import RUN_FILE, Wanted
from medtest.runner.folder import FolderLock, view_folder, write_manifest
from medtest.tracking import Tracker


def track_folders(folders: Sequence[Path], *, console: Console) -> None:
    """Send every run at or below some folders, with its views, that the store does not hold whole.

    Args:
        folders: Runs' folders, or folders above some.
        console: Where it is said what was sent.

    Raises:
        UserMistakes: A folder holds no run.
        FolderInUse: A run is going on in one.
        NotTracked: The store cannot be reached or fails; what was sent stays sent.
        OutputProblem: A folder cannot be read or written.
    """
    runs: list[Path] = []
    for folder in folders:
        below = runs_below(folder)
        if not below:
            raise Mistake(
                where="command line",
                key="FOLDER",
                found=str(folder),
                allowed=f"a folder with {RUN_FILE} and records, or one above such folders",
                fix="medtest track outputs",
            ).as_error()
        runs += [run.resolve() for run in below]
    tracker = Tracker(home())
    sent = held = 0
    for run in dict.fromkeys(runs):
        with ExitStack() as stack:
            lock = FolderLock(run)
            lock.acquire()
            stack.callback(lock.release)
            for view in ("", *views_of(run)[0]):
                new = _send(tracker, run, view)
                sent, held = sent + new, held + (not new)
                if new:
                    say(console, f"sent: {view_folder(run, view)}")
    say(console, f"{sent} sent, {held} held whole by MLflow already.")


def _send(tracker: Tracker, run: Path, view: str) -> bool:
    """Send one view of a run, "" for its own tables, unless the store holds it whole; say whether it was sent."""
    target = view_folder(run, view)
    noted = read_run(target)
    suite = Wanted.from_folder(target, str(noted.get("system_id") or "")).suite
    earlier = str(noted.get("mlflow_run_id") or "")
    if earlier and tracker.sent(suite, earlier) == content_of(run, target):
        return False
    material = remake(run, view=view)
    write_manifest(run)
    parents = tracker.go_on(suite, str(noted.get("mlflow_parent_id") or ""))
    if parents is None:
        parents = tracker.parent(suite, f"{suite} {material.wanted.version}: {material.system}", _tags(material))
    name = send(tracker, parents, material, target)
    parents.rows.setdefault(suite, {})[name, view] = headline_of(material, name)
    say_above(tracker, parents, suite)
    tracker.close(parents)
    return True


def _tags(material: Material) -> dict[str, str]:
    found = {"suite": material.wanted.suite, "suite_version": material.wanted.version, "command": material.command}
    return {key: value for key, value in found.items() if value}
