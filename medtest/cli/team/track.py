"""``medtest track``: send missing results of finished runs to MLflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from medtest.cli.results.tables import current_runs
from medtest.cli.terminal import say
from medtest.core.files.paths import home
from medtest.report.mlflow.headline import Headline, headline_of
from medtest.report.mlflow.metrics import child_of
from medtest.report.mlflow.tracked import begin, content_of, parent_word, say_above, send
from medtest.report.pages.material import Material, read_run
from medtest.report.tracking import Tracker
from medtest.report.views import remake, views_of
from medtest.results.records.wanted import Wanted
from medtest.runner.folder import FolderLock, tables_are_stale, view_folder, write_manifest


def track_folders(folders: Sequence[Path], *, console: Console) -> None:
    """Send every run at or below some folders, with its views, that the store does not hold completely.

    Runs of one command share a parent run: their original one if it never ended, else a new one.

    Args:
        folders: Runs' folders, or folders above some.
        console: Console for the result.

    Raises:
        UserMistakes: A folder holds no run.
        FolderInUse: A run is in progress in one.
        NotTracked: The store cannot be reached or fails; results sent so far remain.
        OutputProblem: A folder cannot be read or written.
    """
    tracker = Tracker(home())
    sent = held = 0
    with ExitStack() as stack:
        commands: dict[tuple[str, str], list[_Held]] = {}
        for run in _runs_in(folders, console):
            lock = FolderLock(run)
            lock.acquire()
            stack.callback(lock.release)
            for view in ("", *views_of(run)[0]):
                sent_view = _look_up(tracker, run, view)
                commands.setdefault((sent_view.suite, sent_view.parent), []).append(sent_view)
        for group in commands.values():
            for sent_view in _send(tracker, group):
                sent += 1
                say(console, f"sent: {view_folder(sent_view.run, sent_view.view)}")
            held += sum(held_view.whole for held_view in group)
    say(console, f"{sent} sent, {held} already complete in MLflow.")


@dataclass(frozen=True, kw_only=True)
class _Held:
    """State of one view of a run in the store; the view "" is that of the run's own tables.

    ``parent`` is the parent run, by its id or by the word recorded before its creation.
    """

    run: Path
    view: str
    suite: str
    parent: str
    whole: bool


def _runs_in(folders: Sequence[Path], console: Console) -> list[Path]:
    runs: list[Path] = []
    for folder in folders:
        runs += [run.resolve() for run in current_runs(folder, command="medtest track", console=console)]
    return list(dict.fromkeys(runs))


def _look_up(tracker: Tracker, run: Path, view: str) -> _Held:
    target = view_folder(run, view)
    noted = read_run(target)
    suite = Wanted.from_folder(target, str(noted.get("system_id") or "")).suite
    earlier = str(noted.get("mlflow_run_id") or "")
    # Records may be newer than the sent tables, if a run continued and was killed.
    whole = bool(earlier) and not tables_are_stale(run) and tracker.sent(suite, earlier) == content_of(run, target)
    above = parent_word(noted) or str(noted.get("mlflow_parent_id") or "")
    return _Held(run=run, view=view, suite=suite, parent=above, whole=whole)


def _send(tracker: Tracker, group: Sequence[_Held]) -> Iterator[_Held]:
    """Send the missing runs of one command and yield each; then write the summary of all to their parent."""
    suite, parents = group[0].suite, tracker.go_on(group[0].suite, group[0].parent)
    goes_on = parents is not None  # otherwise complete runs are below a parent that has ended
    rows: dict[tuple[str, str], Headline] = {}
    for held_view in group:
        if held_view.whole and not goes_on:
            continue
        material = remake(held_view.run, view=held_view.view)
        if parents is None:
            systems = dict.fromkeys(str(read_run(each.run).get("system") or each.run.parent.name) for each in group)
            name = f"{suite} {material.wanted.version}: {', '.join(systems)}"
            targets = [view_folder(each.run, each.view) for each in group]
            parents = begin(tracker, suite, name, _tags(material), targets)
        if held_view.whole:
            name = child_of(material, run_id=None, ended_well=True).name
        else:
            write_manifest(held_view.run)
            name = send(tracker, parents, material)
            yield held_view
        rows[name, held_view.view] = headline_of(material, name)
    if parents is not None:
        parents.rows[suite] = rows
        say_above(tracker, parents, suite)
        tracker.close(parents)


def _tags(material: Material) -> dict[str, str]:
    run_tags = {"suite": material.wanted.suite, "suite_version": material.wanted.version, "command": material.command}
    return {key: value for key, value in run_tags.items() if value}
