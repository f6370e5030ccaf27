"""Terminal output shared by all commands: console, lines of text, progress bars, lists of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from typer.core import TyperGroup

RUN, READ, MAKE, MODELS = HEADINGS = ("Test a system", "Read results", "Data, follow-ups, people", "Models")
"""Headings of ``medtest --help``, in order."""
_MORE = "Commands"


class GroupedCommands(TyperGroup):
    """Command group that lists commands under the headings of ``rich_help_panel`` and wraps long summaries.

    Click would truncate summaries at the end of the line.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, group by group, in the order of the headings."""
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*HEADINGS, _MORE)}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            heading = getattr(command, "rich_help_panel", None)
            summary = " ".join((command.short_help or command.help or "").split("\n\n")[0].split())
            groups[heading if isinstance(heading, str) else _MORE].append((name, summary))
        for heading, rows in groups.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def console(*, stderr: bool = False) -> Console:
    """Return a console, coloured on a terminal, otherwise plain and wide enough for tables."""
    new_console = Console(stderr=stderr, highlight=False)
    return new_console if new_console.is_terminal else Console(stderr=stderr, highlight=False, width=140, no_color=True)


def say(console: Console, text: str) -> None:
    """Print text literally: without markup and line breaks, so that paths can be copied."""
    console.print(text, markup=False, soft_wrap=True)


@contextmanager
def bar(console: Console, title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; yield a function that takes the finished and total counts.

    Args:
        console: Console for the bar.
        title: Text before it.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
