"""``medtest inspect``: activations and attributions inside a network under the follow-ups of a suite."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from medtest.cli.terminal import bar, say
from medtest.cli.typed import own_keys, split_tokens
from medtest.core.errors import ExitCode, NotTracked, typed_error
from medtest.core.files.paths import path_from_here
from medtest.session.runs import invocation_of
from medtest.suite.compose import load

if TYPE_CHECKING:
    from medtest.inside.inspect import Inspected
    from medtest.suite.model import Invocation


def inspect(tokens: Sequence[str], *, config_dirs: Sequence[Path], console: Console) -> ExitCode:
    """Inspect the systems of a suite, write figures and tables beside their runs, and update their reports.

    Returns:
        ``NOT_TRACKED`` if MLflow did not accept the files of a run, else ``OK``.

    Raises:
        UserMistakes: The tokens have mistakes, or a system cannot be inspected.
        OutputProblem: A folder cannot be written.
    """
    from medtest.inside.inspect import inspect_suite
    from medtest.inside.options import KEYS, options_of
    from medtest.runner.folder import FolderLock, write_manifest
    from medtest.runner.prepared import prepare_run

    name, overrides, own, words = split_tokens(tokens, *KEYS)
    if words:
        raise typed_error("", found=" ".join(words), allowed="suite=NAME and key=value tokens")
    options = options_of(own)
    with own_keys(*KEYS):
        loaded = load(name, overrides, config_dirs=config_dirs)
    invocation = invocation_of(loaded)
    training = None
    if options.training:
        data = [token for token in overrides if token.startswith("data=")]
        training_suite = load(options.training, data, config_dirs=config_dirs)
        training = (training_suite.suite, replace(invocation_of(training_suite), limit=None))
    with ExitStack() as locks:
        for folder in sorted(set(prepare_run(loaded.suite, invocation).folders)):
            lock = FolderLock(folder)
            lock.acquire()
            locks.callback(lock.release)
        with bar(console, "seeds") as progress:
            inspections = inspect_suite(loaded.suite, invocation, options, training=training, progress=progress)
        problems = [problem for inspected in inspections if (problem := _attach(inspected, invocation))]
        for inspected in inspections:
            write_manifest(inspected.folder)
    for inspected in inspections:
        layers = ", ".join(inspected.layers) or "no layer"
        say(console, f"{inspected.system}: {inspected.cases:,} follow-ups; {layers}")
        for line in inspected.notices:
            say(console, f"  {line}")
        say(console, f"  {path_from_here(inspected.folder)}/inside: {', '.join(file.name for file in inspected.files)}")
    for problem in problems:
        say(console, problem)
    return ExitCode.NOT_TRACKED if problems else ExitCode.OK


def _attach(inspected: Inspected, invocation: Invocation) -> str:
    """Update the report of a finished run and attach the files to its MLflow run; return a problem message or ""."""
    from medtest.report.pages.comparison import REPORT
    from medtest.report.pages.material import INSIDE, read_run
    from medtest.report.tracking import Tracker
    from medtest.report.views import remake, views_of
    from medtest.results.records.records_io import RECORDS
    from medtest.runner.folder import view_folder

    if not (inspected.folder / RECORDS).is_file():
        inspected.notices.append("No finished run yet: the report of a later run will show these figures.")
        return ""
    views = ["", *views_of(inspected.folder)[0]]
    for view in views:
        remake(inspected.folder, view=view)
    if not invocation.track:
        return ""
    files = [(file, INSIDE) for file in inspected.files]
    try:
        for view in views:
            target = view_folder(inspected.folder, view)
            if run_id := read_run(target).get("mlflow_run_id"):
                tracker = Tracker(invocation.home, invocation.tracking_uri)
                tracker.attach(str(run_id), [*files, (target / REPORT, "")])
    except NotTracked as error:
        return str(error)
    return ""
