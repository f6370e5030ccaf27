"""One line on a terminal that says how far a run is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from medtest.runner.outcome import Count, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_WARM_UP = 2.0


class Silence:
    """No progress line: there is no terminal, or the user wants quiet."""

    def update(self, count: Count) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class TerminalLine:
    """A progress bar with cases done, violations, errors and the time left, on standard error."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._first: tuple[float, int] | None = None

    def update(self, count: Count) -> None:
        """Show where the run stands."""
        if self._bar is None or self._task is None:
            self._start(count)
        if self._bar is not None and self._task is not None:
            from rich.markup import escape

            self._bar.update(
                self._task,
                completed=count.done,
                total=count.total,
                violations=count.violations,
                errors=f" · [red]{count.errors:,} errors[/]" if count.errors else "",
                left=self._left(count),
                calls=f" · {escape(count.calls)}" if count.calls else "",
            )

    def close(self) -> None:
        """Leave the last line standing."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _start(self, count: Count) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            BarColumn(bar_width=30),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} cases"),
            TextColumn("· {task.fields[violations]:,} violations{task.fields[errors]}"),
            TextColumn("· {task.fields[left]}{task.fields[calls]}"),
            console=Console(stderr=True),
            refresh_per_second=4,
        )
        self._bar.start()
        self._task = self._bar.add_task(
            "", total=count.total, violations=0, errors="", left="loading the systems", calls=""
        )

    def _left(self, count: Count) -> str:
        """Return the time left; the pace is measured from the first finished case on, for loading is no work."""
        now = time.monotonic()
        if count.done >= count.total:
            return "finishing"
        executed = count.done - count.reused
        if executed == 0:
            return "loading the systems"
        if self._first is None:
            self._first = (now, executed)
        since, before = self._first
        if now - since < _WARM_UP or executed == before:
            return "running"
        seconds = (count.total - count.done) * (now - since) / (executed - before)
        if seconds < 90:
            return f"{seconds:.0f} s left"
        if seconds < 5400:
            return f"{seconds / 60:.0f} min left"
        return f"{seconds / 3600:.1f} h left"


def choose_progress(*, quiet: bool) -> Progress:
    """Return a line for a terminal, silence elsewhere."""
    if quiet:
        return Silence()
    from rich.console import Console

    console = Console(stderr=True)
    return TerminalLine() if console.is_terminal and not console.is_dumb_terminal else Silence()
