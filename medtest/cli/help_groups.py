"""Help of a command that has others below it: in groups, each summary whole."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

RUN, READ, MAKE, MODELS = HEADINGS = ("Test a system", "Read results", "Data, follow-ups, people", "Models")
"""Headings of ``medtest --help``, in their order."""
_MORE = "Commands"


class GroupedCommands(TyperGroup):
    """Lists commands under the headings that ``rich_help_panel`` gave them, and wraps summaries where they are long.

    Click cuts a summary at the end of the line; what a command is for then stands nowhere in the list.
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
