"""``medtest merge``: shards of a run joined, and its tables and report made."""

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
        console: Where tables are printed.
        out: Folder of the whole run; None for the one below ``outputs/``.
        fresh: Move what the run's folder holds beside its shards aside, where no shard holds it.
        junit: ``cells`` or ``cases``: what a test case of ``junit.xml`` is; "" writes none.

    Returns:
        ``GATE_NOT_HELD`` when a gate of the run is not held, else ``OK``.

    Raises:
        UserMistakes: The shards are not those of one whole run, or the folder is not this run's; nothing was written.
        FolderInUse: A shard is being run.
        OutputProblem: The run's folder cannot be written.
    """
    from medtest.cli.results.tables import remake_tables
    from medtest.runner.sharding.joining import join

    done = join(folders, home=home(), out=out, fresh=fresh)
    of = "" if done.cases == done.planned else f" of {done.planned:,}"
    shards = "shard" if done.shards == 1 else "shards"
    say(console, f"{done.shards:,} {shards} joined: {done.cases:,}{of} cases in {path_from_here(done.folder)}")
    code = remake_tables(done.folder, console=console, junit=junit)
    if out is None:
        say(console, "The same command without shard= runs no case again; it draws sample pictures and logs to MLflow.")
    return code
