"""``medtest inspect``: what happens inside a network under the follow-ups of a suite."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from medtest.cli.terminal import bar, say
from medtest.cli.typed import mistake, own_keys, split_tokens
from medtest.core.errors import ExitCode, NotTracked
from medtest.session.runs import invocation_of
from medtest.suite.compose import load

if TYPE_CHECKING:
    from medtest.inside.inspect import Inspected
    from medtest.suite.model import Invocation


def inspect(tokens: Sequence[str], *, config_dirs: Sequence[Path], console: Console) -> ExitCode:
    """Look into the systems of a suite, write figures and tables beside their runs, and renew their reports.

    Returns:
        ``NOT_TRACKED`` where a run's MLflow did not take the files, else ``OK``.

    Raises:
        UserMistakes: What was typed has mistakes, or a system cannot be looked into.
        OutputProblem: A folder cannot be written.
    """
    from medtest.inside.inspect import inspect_suite
    from medtest.inside.options import KEYS, options_of
    from medtest.runner.folder import FolderLock, write_manifest
    from medtest.runner.prepared import prepare_run

    name, overrides, own, words = split_tokens(tokens, *KEYS)
    if words:
        raise mistake("", found=" ".join(words), allowed="suite=NAME and key=value tokens")
    options = options_of(own)
    with own_keys(*KEYS):
        loaded = load(name, overrides, config_dirs=config_dirs)
    invocation = invocation_of(loaded)
    training = None
    if options.training:
        data = [token for token in overrides if token.startswith("data=")]
        known = load(options.training, data, config_dirs=config_dirs)
        training = (known.suite, replace(invocation_of(known), limit=None))
    with ExitStack() as locks:
        for folder in sorted(set(prepare_run(loaded.suite, invocation).folders)):
            lock = FolderLock(folder)
            lock.acquire()
            locks.callback(lock.release)
        with bar(console, "seeds") as progress:
            found = inspect_suite(loaded.suite, invocation, options, training=training, progress=progress)
        problems = [problem for one in found if (problem := _attach(one, invocation))]
        for one in found:
            write_manifest(one.folder)
    for one in found:
        layers = ", ".join(one.layers) or "no layer"
        say(console, f"{one.system}: {one.cases:,} follow-ups; {layers}")
        for line in one.notices:
            say(console, f"  {line}")
        say(console, f"  {_near(one.folder)}/inside: {', '.join(file.name for file in one.files)}")
    for problem in problems:
        say(console, problem)
    return ExitCode.NOT_TRACKED if problems else ExitCode.OK


def _attach(one: Inspected, invocation: Invocation) -> str:
    """Renew the report of a finished run and hand the files to its run in MLflow; return what went wrong there."""
    from medtest.report.pages.comparison import REPORT
    from medtest.report.pages.material import INSIDE, read_run
    from medtest.report.tracking import Tracker
    from medtest.report.views import remake, views_of
    from medtest.results.records.records_io import RECORDS
    from medtest.runner.folder import view_folder

    if not (one.folder / RECORDS).is_file():
        one.notices.append("No run of it is finished yet: its report will show what was seen once there is one.")
        return ""
    views = ["", *views_of(one.folder)[0]]
    for view in views:
        remake(one.folder, view=view)
    if not invocation.track:
        return ""
    files = [(file, INSIDE) for file in one.files]
    try:
        for view in views:
            target = view_folder(one.folder, view)
            if run_id := read_run(target).get("mlflow_run_id"):
                tracker = Tracker(invocation.home, invocation.tracking_uri)
                tracker.attach(str(run_id), [*files, (target / REPORT, "")])
    except NotTracked as error:
        return str(error)
    return ""


def _near(folder: Path) -> str:
    """Return a folder as it is typed from here, where it lies below."""
    try:
        return folder.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return "/".join(folder.parts[-4:])
