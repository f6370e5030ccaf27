"""``medtest merge``: join the shards of a run, then make its tables and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from medtest.cli.terminal import say
from medtest.core.errors import ExitCode
from medtest.core.files.paths import home, path_from_here


def merge_shards(
    folders: Sequence[Path], *, console: Console, out: Path | None = None, fresh: bool = False, junit: str = ""
) -> ExitCode:
    """Join the shards of one run of one system, and make its tables and report.

    Args:
        folders: Shards' folders, or folders of runs that hold ``shards/``.
        console: Console for the tables.
        out: Folder of the whole run; None for the one below ``outputs/``.
        fresh: Whether to move aside content of the run's folder that no shard holds.
        junit: ``cells`` or ``cases``, the unit of a test case in ``junit.xml``; "" writes no such file.

    Returns:
        ``GATE_FAILED`` when a gate of the run failed, else ``OK``.

    Raises:
        UserMistakes: The shards do not form one whole run, or the folder is not this run's; nothing was written.
        FolderInUse: A shard is running.
        OutputProblem: The run's folder cannot be written.
    """
    from medtest.cli.results.tables import remake_tables
    from medtest.runner.sharding.joining import join

    done = join(folders, home=home(), out=out, fresh=fresh)
    of = "" if done.cases == done.planned else f" of {done.planned:,}"
    shards = "shard" if done.shards == 1 else "shards"
    say(console, f"{done.shards:,} {shards} merged: {done.cases:,}{of} cases in {path_from_here(done.folder)}")
    code = remake_tables(done.folder, console=console, junit=junit)
    if out is None:
        say(
            console,
            "Next, the same run without shard= draws sample pictures and logs to MLflow; it runs no case again.",
        )
    return code
