"""``medtest followups``: make, verify and export the store of follow-ups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from medtest.cli.terminal import GroupedCommands, bar, console, say
from medtest.cli.typed import ConfigDirs, Tokens, split_tokens
from medtest.core.errors import ExitCode, nearest_name, typed_error

if TYPE_CHECKING:
    from medtest.runner.followups import FollowUpStore, StoreReport
    from medtest.suite.model import Suite

app = typer.Typer(cls=GroupedCommands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)

_MOST_LINES = 50
Where = Annotated[
    Path | None,
    typer.Option("--store", help="Folder of the store. Default: followups/ in this folder (or MEDTEST_HOME)."),
]


@app.callback()
def followups() -> None:
    """Make, verify and export stored follow-ups, for testing, training and human judgement."""


@app.command("make")
def make(
    tokens: Tokens,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", "--to", help="Folder of the store. Default: followups/ in this folder (or MEDTEST_HOME)."
        ),
    ] = None,
    config_dir: ConfigDirs = None,
) -> None:
    """Make a suite's follow-ups: medtest followups make suite=polyp_seg limit=10."""
    from medtest.runner.followups import make_followups
    from medtest.session.runs import invocation_of
    from medtest.suite.compose import load

    out = console()
    name, overrides, own, words = split_tokens(tokens, "to", "store")
    if words:
        raise typed_error("", found=" ".join(words), allowed="suite=NAME and key=value tokens")
    folder = store or next((Path(own[key]) for key in ("store", "to") if own.get(key)), None)
    loaded = load(name, overrides, config_dirs=config_dir or [])
    with bar(out, "follow-ups") as progress:
        report = make_followups(
            loaded.suite,
            invocation_of(loaded),
            None if folder is None else folder.expanduser(),
            progress=progress,
        )
    summary = f"{report.made:,} made, {report.reused:,} stored before, {report.skipped:,} not applicable"
    say(
        out,
        f"{report.folder.name}: {summary}; {report.sources:,} sources, {report.bytes / 1e6:,.1f} MB written in "
        f"{report.seconds:,.1f} s",
    )
    if report.left_out:
        say(out, f"Not stored, because they depend on the system: {', '.join(report.left_out)}")
    if report.errors:
        say(out, f"{report.errors:,} could not be made:")
        _lines(out, [f"{address}: {reason}" for address, reason in report.problems], report.errors)
    say(out, f"suite key: {report.suite}")
    raise typer.Exit(ExitCode.TOO_MANY_ERRORS if _too_many(report, loaded.suite) else ExitCode.OK)


@app.command("verify")
def verify(
    store: Where = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Move damaged and unknown files aside, and drop entries without a picture.")
    ] = False,
) -> None:
    """Verify every picture of the store. Exit code 1: one is missing, altered, truncated or orphaned."""
    from medtest.runner.followups.verify import repair_store, verify_store

    out = console()
    opened = _opened(store, write=repair)
    with bar(out, "pictures") as progress:
        report = repair_store(opened, progress=progress) if repair else verify_store(opened, progress=progress)
    head = f"{opened.folder.name}: {report.entries:,} follow-ups, {report.files:,} pictures"
    if report.whole:
        say(out, f"{head}: complete")
    else:
        count = len(report.findings)
        say(out, f"{head}: {count:,} finding{'s' if count > 1 else ''}")
        _lines(out, [str(finding) for finding in report.findings], count)
    if report.in_work:
        say(out, f"{report.in_work:,} files of a running process are not indexed yet.")
    if repair and not report.whole:
        say(
            out,
            f"Repaired: {report.moved:,} files moved aside, {report.forgotten:,} follow-ups dropped; the command "
            "that made them makes them again.",
        )
    raise typer.Exit(ExitCode.OK if report.whole or repair else 1)


@app.command("export")
def export(
    to: Annotated[Path, typer.Option("--to", help="New folder to write.")],
    store: Where = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this data set; repeatable.")] = None,
    relation: Annotated[list[str] | None, typer.Option(help="Only this relation; repeatable.")] = None,
    severity: Annotated[list[int] | None, typer.Option(help="Only this severity; repeatable.")] = None,
    suite: Annotated[str, typer.Option(help="Only follow-ups of this suite, by name or key.")] = "",
) -> None:
    """Export a plain data set for other tools: images/, masks/, sources/ and followups.csv."""
    from medtest.runner.followups.export import export_store

    out = console()
    opened = _opened(store, write=False)
    target = to.expanduser()
    with bar(out, "follow-ups") as progress:
        report = export_store(
            opened,
            target,
            suite=_suite_key(opened, suite),
            datasets=dataset or (),
            relations=relation or (),
            severities=severity or (),
            progress=progress,
        )
    skipped = f", {report.skipped:,} not applicable (listed in the table)" if report.skipped else ""
    say(
        out,
        f"{target.name}: {report.followups:,} images, {report.masks:,} masks, {report.sources:,} sources, "
        f"followups.csv ({report.bytes / 1e6:,.1f} MB){skipped}",
    )


@app.command("list")
def list_suites(store: Where = None) -> None:
    """List the suites whose follow-ups are stored."""
    from rich.table import Table

    opened = _opened(store, write=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("suite", "version", "key", "added"):
        table.add_column(column, no_wrap=True)
    table.add_column("cases", justify="right", no_wrap=True)
    for entry in opened.suites():
        table.add_row(entry.name, entry.version, entry.key, entry.added, f"{entry.entries:,}")
    console().print(table)


def _opened(folder: Path | None, *, write: bool) -> FollowUpStore:
    from medtest.runner.followups import FollowUpStore, default_folder
    from medtest.runner.followups.index_rows import INDEX

    chosen = default_folder() if folder is None else folder.expanduser()
    return FollowUpStore.open(chosen, create=write and (chosen / INDEX).is_file())


def _suite_key(store: FollowUpStore, named: str) -> str:
    """Return a suite's key for a key or name (the latest suite of that name)."""
    if not named:
        return ""
    entries = store.suites()
    for entry in entries:
        if named in (entry.key, entry.name):
            return entry.key
    names = sorted({entry.name for entry in entries})
    raise typed_error(
        "--suite", named, ", ".join(names) or "none", "medtest followups list", nearest=nearest_name(named, names)
    )


def _too_many(report: StoreReport, suite: Suite) -> bool:
    """Return True if more follow-ups failed than ``max_error_percent`` of the suite allows."""
    tried = report.made + report.reused + report.errors
    return bool(report.errors) and 100.0 * report.errors > suite.max_error_percent * tried


def _lines(out: Console, lines: list[str], total: int) -> None:
    for line in lines[:_MOST_LINES]:
        say(out, f"  {line}")
    if total > _MOST_LINES:
        out.print(f"  and {total - _MOST_LINES:,} more")
