"""``medtest track``: sends MLflow what it lacks of finished runs, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from medtest.cli.results.tables import some_runs_below
from medtest.cli.terminal import say
from medtest.core.files.paths import home
from medtest.report.mlflow.headline import Headline, headline_of
from medtest.report.mlflow.metrics import child_of
from medtest.report.mlflow.tracked import begin, content_of, parent_word, say_above, send
from medtest.report.pages.material import Material, read_run
from medtest.report.tracking import Tracker
from medtest.report.views import remake, views_of
from medtest.results.records.wanted import Wanted
from medtest.runner.folder import FolderLock, check_format, tables_are_stale, view_folder, write_manifest


def track_folders(folders: Sequence[Path], *, console: Console) -> None:
    """Send every run at or below some folders, with its views, that the store does not hold whole.

    Runs of one command are sent below one parent run: the one that was to stand above them if it never ended, else a
    new one.

    Args:
        folders: Runs' folders, or folders above some.
        console: Where it is said what was sent.

    Raises:
        UserMistakes: A folder holds no run.
        FolderInUse: A run is going on in one.
        NotTracked: The store cannot be reached or fails; what was sent stays sent.
        OutputProblem: A folder cannot be read or written.
    """
    tracker = Tracker(home())
    sent = held = 0
    with ExitStack() as stack:
        commands: dict[tuple[str, str], list[_Held]] = {}
        for run in _runs_in(folders):
            lock = FolderLock(run)
            lock.acquire()
            stack.callback(lock.release)
            for view in ("", *views_of(run)[0]):
                one = _look_up(tracker, run, view)
                commands.setdefault((one.suite, one.parent), []).append(one)
        for found in commands.values():
            for one in _send(tracker, found):
                sent += 1
                say(console, f"sent: {view_folder(one.run, one.view)}")
            held += sum(one.whole for one in found)
    say(console, f"{sent} sent, {held} held whole by MLflow already.")


@dataclass(frozen=True, kw_only=True)
class _Held:
    """What the store holds of one view of a run, "" for its own tables: all of it or not.

    ``parent`` is the run above, by its id or by the word that it was begun under.
    """

    run: Path
    view: str
    suite: str
    parent: str
    whole: bool


def _runs_in(folders: Sequence[Path]) -> list[Path]:
    runs: list[Path] = []
    for folder in folders:
        runs += [run.resolve() for run in some_runs_below(folder, command="medtest track")]
    return list(dict.fromkeys(runs))


def _look_up(tracker: Tracker, run: Path, view: str) -> _Held:
    check_format(run)
    target = view_folder(run, view)
    noted = read_run(target)
    suite = Wanted.from_folder(target, str(noted.get("system_id") or "")).suite
    earlier = str(noted.get("mlflow_run_id") or "")
    # Records may be newer than the tables that were sent: a run that went on and was killed.
    whole = bool(earlier) and not tables_are_stale(run) and tracker.sent(suite, earlier) == content_of(run, target)
    above = parent_word(noted) or str(noted.get("mlflow_parent_id") or "")
    return _Held(run=run, view=view, suite=suite, parent=above, whole=whole)


def _send(tracker: Tracker, found: Sequence[_Held]) -> Iterator[_Held]:
    """Send what the store lacks of one command's runs and yield it; their parent then says what all of them found."""
    suite, parents = found[0].suite, tracker.go_on(found[0].suite, found[0].parent)
    goes_on = parents is not None  # else what is whole stands below a parent that ended
    rows: dict[tuple[str, str], Headline] = {}
    for one in found:
        if one.whole and not goes_on:
            continue
        material, target = remake(one.run, view=one.view), view_folder(one.run, one.view)
        if parents is None:
            systems = dict.fromkeys(str(read_run(each.run).get("system") or each.run.parent.name) for each in found)
            name = f"{suite} {material.wanted.version}: {', '.join(systems)}"
            targets = [view_folder(each.run, each.view) for each in found]
            parents = begin(tracker, suite, name, _tags(material), targets)
        if one.whole:
            name = child_of(material, target, run_id=None, ended_well=True).name
        else:
            write_manifest(one.run)
            name = send(tracker, parents, material, target)
            yield one
        rows[name, one.view] = headline_of(material, name)
    if parents is not None:
        parents.rows[suite] = rows
        say_above(tracker, parents, suite)
        tracker.close(parents)


def _tags(material: Material) -> dict[str, str]:
    found = {"suite": material.wanted.suite, "suite_version": material.wanted.version, "command": material.command}
    return {key: value for key, value in found.items() if value}
