"""A run's results in MLflow: a parent run for the invocation, a child run for each system under its view."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtest.core.errors import NotTracked
from medtest.report.alpha_sigma.section import files_of
from medtest.report.mlflow.headline import headline_of, summary
from medtest.report.mlflow.metrics import child_of
from medtest.report.pages.comparison import Compared
from medtest.report.pages.material import Material, read_run
from medtest.report.tracking import Begun, Parents, Tracker
from medtest.runner.folder import TABLES_OF, write_manifest, write_run
from medtest.runner.reporting import signals
from medtest.runner.reporting.outcome import RunOutcome
from medtest.suite.model import Invocation, Suite

_BEGUN, _PARENT_BEGUN = "mlflow_begun", "mlflow_parent_begun"
"""Keys of ``run.json`` with the words that identify a run, and its parent, whose creation was not confirmed."""


def track(
    suite: Suite,
    invocation: Invocation,
    outcome: RunOutcome,
    materials: Sequence[Material],
    compared: Compared,
    *,
    parents: Parents | None,
    sweep: bool,
) -> Parents:
    """Write a child run for each system below the invocation's parent run.

    Args:
        suite: The suite.
        invocation: Options of the call.
        outcome: Result of the runner.
        materials: Material of each system under the requested view, followed by that of the folders' own tables where a
            case ran.
        compared: Comparison of the systems under the requested view.
        parents: Parent runs created by an earlier job of the sweep.
        sweep: Whether more jobs follow, so that the parents stay open.

    Returns:
        The parent runs.

    Raises:
        NotTracked: The store failed; the parent run is marked FAILED if possible.
    """
    tracker = Tracker(invocation.home, invocation.tracking_uri)
    name, tags = _parent_name(suite, outcome, sweep), _parent_tags(suite, invocation)
    tracked, failed = parents, True
    try:
        with signals.held():  # A run created but not noted would stay RUNNING.
            tracked = begin(tracker, suite.name, name, tags, [material.target for material in materials], parents)
        for material in materials:
            child = send(tracker, tracked, material)
            if material.view == materials[0].view:  # the requested view is shown on the parent run
                tracked.rows.setdefault(suite.name, {})[child, material.view] = headline_of(material, child)
        say_above(tracker, tracked, suite.name, suite.description)
        tracker.attach(tracked.runs[suite.name], _shared_files(compared))
        failed = False
    finally:
        if tracked is not None and (failed or not sweep):
            _close_quietly(tracker, tracked, failed=failed) if failed else tracker.close(tracked)
    return tracked


def begin(
    tracker: Tracker,
    suite: str,
    name: str,
    tags: Mapping[str, str],
    targets: Sequence[Path],
    parents: Parents | None = None,
) -> Parents:
    """Return the parents including the run above these systems, created once even if its creation is not confirmed.

    Args:
        tracker: The store.
        suite: The suite.
        name: Name of the run.
        tags: Tags of the run.
        targets: Folders whose ``run.json`` names the run: the systems' own, or their views'.
        parents: Parents from an earlier job of the sweep.

    Raises:
        NotTracked: The store failed.
    """
    words = [word for target in targets if (word := parent_word(read_run(target)))]
    begun = Begun(word=words[0] if words else secrets.token_hex(16), before=bool(words))
    for target in targets:
        write_run(target, {**read_run(target), _PARENT_BEGUN: begun.word})
    tracked = tracker.parent(suite, name, tags, parents, begun)
    for target in targets:
        _note_parent(target, tracked.runs[suite])
    return tracked


def parent_word(noted: Mapping[str, Any]) -> str:
    """Return the word of a parent run whose creation was never confirmed; "" if there is none.

    Args:
        noted: Content of ``run.json``.
    """
    return str(noted.get(_PARENT_BEGUN) or "")


def _note_parent(target: Path, parent: str) -> None:
    rest = {key: value for key, value in read_run(target).items() if key != _PARENT_BEGUN}
    write_run(target, {**rest, "mlflow_parent_id": parent})


def send(tracker: Tracker, parents: Parents, material: Material) -> str:
    """Write one system's child run completely and return its name.

    ``run.json`` holds the run's id as soon as it exists, so that an interrupted upload resumes in it. Before that, it
    holds a word that identifies a run whose creation was never confirmed. The tag ``sent`` is set last; it identifies
    the records and the suite of the upload.

    Raises:
        NotTracked: The store failed.
    """
    target = material.target
    _note_parent(target, parents.runs[material.wanted.suite])
    noted = read_run(target)
    earlier, before = noted.get("mlflow_run_id"), noted.get(_BEGUN)
    begun = Begun(word=str(before or secrets.token_hex(16)), before=bool(before))
    write_run(target, {**noted, _BEGUN: begun.word})

    def on_created(run_id: str) -> None:
        rest = {key: value for key, value in read_run(target).items() if key != _BEGUN}
        write_run(target, {**rest, "mlflow_run_id": run_id})
        write_manifest(material.folder)

    child = child_of(material, run_id=str(earlier) if earlier else None, ended_well=not material.too_many_errors)
    child = replace(child, begun=begun, sent=content_of(material.folder, target))
    tracker.child(material.wanted.suite, parents, child, on_created=on_created)
    return child.name


def content_of(folder: Path, target: Path) -> str:
    """Return one SHA-256 over the records behind a folder's tables and over a view's suite with its oracle.

    Args:
        folder: The run's folder.
        target: The view in it, or the folder itself.
    """
    parts = [str(read_run(folder).get(TABLES_OF, "")).encode(), (target / "suite.yaml").read_bytes()]
    return hashlib.sha256(b"\n".join(parts)).hexdigest()


def say_above(tracker: Tracker, parents: Parents, suite: str, description: str = "") -> None:
    """Write the summary of the children, including those of earlier jobs of a sweep, to the parent run."""
    rows = list(parents.rows.get(suite, {}).values())
    if rows:
        above = summary(rows, description)
        tracker.headline(parents, suite, above.metrics, above.tags)


def _shared_files(compared: Compared) -> list[tuple[Path, str]]:
    """Return the files shared by all systems, with the artifact folder of each."""
    page = [] if compared.page is None else [(path, "") for path in (compared.page, *compared.tables)]
    return page + [
        (path, f"alpha_sigma/{curves.found.scale}") for curves in compared.series for path in files_of(curves)
    ]


def _close_quietly(tracker: Tracker, parents: Parents, *, failed: bool) -> None:
    """Mark parents FAILED if the store accepts it; errors are ignored, as the original error is reported."""
    try:
        tracker.close(parents, failed=failed)
    except NotTracked:
        return


def _parent_name(suite: Suite, outcome: RunOutcome, sweep: bool) -> str:
    names: Sequence[str] = [system.record_name for system in outcome.systems]
    if sweep:
        return f"{suite.name} {suite.version} sweep"
    return f"{suite.name} {suite.version}: {', '.join(names)}"


def _parent_tags(suite: Suite, invocation: Invocation) -> dict[str, str]:
    parent_tags = {
        "suite": suite.name,
        "suite_version": suite.version,
        "command": invocation.sweep_command or invocation.command,
        "mlflow.note.content": suite.description,
    }
    return {key: value for key, value in parent_tags.items() if value}


def track_failure(
    suite: Suite,
    invocation: Invocation,
    reason: str,
    *,
    parents: Parents | None = None,
    sweep: bool = False,
    outcome: RunOutcome | None = None,
) -> Parents:
    """Mark the parent run of a failed invocation FAILED in MLflow, with the reason as a tag.

    Args:
        suite: The suite.
        invocation: Options of the call.
        reason: One line without paths.
        parents: Parent runs created by an earlier job of the sweep.
        sweep: Whether more jobs follow.
        outcome: Result of the runner, if any.

    Raises:
        NotTracked: The store failed.
    """
    tracker = Tracker(invocation.home, invocation.tracking_uri)
    name = _parent_name(suite, outcome or RunOutcome(systems=()), sweep)
    tags = {**_parent_tags(suite, invocation), "failure": reason}
    tracked = tracker.parent(suite.name, name, tags, parents)
    tracked.failed.add(suite.name)
    if not sweep:
        tracker.close(tracked, failed=True)
    return tracked


def close_parents(home: Path, parents: Parents, *, failed: bool = False) -> None:
    """End the parent runs of a sweep.

    Args:
        home: Folder that holds ``mlruns/``.
        parents: Parents from :func:`track`.
        failed: Whether any job ended badly.

    Raises:
        NotTracked: The store failed.
    """
    Tracker(home, parents.uri).close(parents, failed=failed)
