"""Progress display: one moving line on a terminal, a line every half minute in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from medtest.api.stops import duration
from medtest.runner.reporting.outcome import Count, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID
    from rich.status import Status

_WARM_UP = 2.0
_EVERY = 30.0
"""Seconds between two lines of a log."""
_READING_EVERY = 5.0


class Silence:
    """No progress display, for quiet runs."""

    def update(self, count: Count) -> None:
        """Do nothing."""

    def phase(self, name: str) -> None:
        """Do nothing."""

    def reading(self, line: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class TimeLeft:
    """Estimate of the remaining time; the pace is measured from the first finished case on, to exclude loading.

    Args:
        now: A clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._first: tuple[float, int] | None = None

    def rate(self, count: Count) -> float:
        """Return the cases per second; 0 if unknown."""
        executed = count.done - count.reused
        if executed == 0:
            return 0.0
        now = self._now()
        if self._first is None:
            self._first = (now, executed)
        since, before = self._first
        return 0.0 if now - since < _WARM_UP else (executed - before) / (now - since)

    def left(self, count: Count) -> str:
        """Return the remaining time as text."""
        if count.done >= count.total:
            return "finishing"
        rate = self.rate(count)
        if not rate:
            return "running" if count.done > count.reused else "loading the systems"
        return f"{duration((count.total - count.done) / rate)} left"


class LogLines:
    """Progress lines every half minute, for logs of jobs and build servers.

    The first line also comes after half a minute: for a short run only its phases are printed.

    Args:
        write: Writes a line.
        now: A clock, in seconds.
    """

    def __init__(self, write: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._now = now
        self._pace = TimeLeft(now)
        self._started = self._last = now()

    def update(self, count: Count) -> None:
        """Write the progress if half a minute has passed."""
        rate = self._pace.rate(count)
        now = self._now()
        if now - self._last < _EVERY:
            return
        self._last = now
        parts = [f"{count.done:,} of {count.total:,} cases"]
        if rate and count.done < count.total:  # while workers end, no case is added and the rate would only fall
            parts.append(f"{rate:.1f} a second" if rate >= 0.95 else f"{60 * rate:.1f} a minute")
        parts.append(self._pace.left(count))
        parts.append(f"{count.violations:,} violation{'' if count.violations == 1 else 's'}")
        parts += [f"{count.errors:,} error{'' if count.errors == 1 else 's'}"] if count.errors else []
        parts += [count.calls] if count.calls else []
        self._write(f"{self._since(now)}  {', '.join(parts)}")

    def phase(self, name: str) -> None:
        """Write the name of the phase."""
        self._last = self._now()
        self._write(f"{self._since(self._last)}  {name}")

    def reading(self, line: str) -> None:
        """Write the progress of a reader if a few seconds have passed."""
        if self._now() - self._last >= _READING_EVERY:
            self.phase(f"reading: {line}")

    def close(self) -> None:
        """Do nothing: the caller prints the outcome."""

    def _since(self, now: float) -> str:
        minutes, seconds = divmod(int(now - self._started), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}"


class TerminalLine:
    """Progress bar with finished cases, violations, errors and the remaining time, on standard error."""

    def __init__(self) -> None:
        self._bar: tuple[RichProgress, TaskID] | None = None
        self._pace = TimeLeft(lambda: time.monotonic())
        self._phase: Status | None = None

    def update(self, count: Count) -> None:
        """Show the progress."""
        from rich.markup import escape

        bar, task = self._bar = self._bar or self._started(count)
        bar.update(
            task,
            completed=count.done,
            total=count.total,
            violations=count.violations,
            errors=f" · [red]{count.errors:,} errors[/]" if count.errors else "",
            left=self._pace.left(count),
            calls=f" · {escape(count.calls)}" if count.calls else "",
        )

    def phase(self, name: str) -> None:
        """Show the name of the phase below the last line until it ends."""
        from rich.console import Console

        self.close()
        self._phase = Console(stderr=True).status(name)
        self._phase.start()

    def reading(self, line: str) -> None:
        """Show the progress of a reader."""
        from rich.markup import escape

        if self._phase is None:
            self.phase("reading")
        if self._phase is not None:
            self._phase.update(f"reading: {escape(line)}")

    def close(self) -> None:
        """Keep the last line on the screen."""
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None
        if self._phase is not None:
            self._phase.stop()
            self._phase = None

    @staticmethod
    def _started(count: Count) -> tuple[RichProgress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        bar = Progress(
            BarColumn(bar_width=30),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} cases"),
            TextColumn("· {task.fields[violations]:,} violations{task.fields[errors]}"),
            TextColumn("· {task.fields[left]}{task.fields[calls]}"),
            console=Console(stderr=True),
            refresh_per_second=4,
        )
        bar.start()
        return bar, bar.add_task("", total=count.total, violations=0, errors="", left="loading the systems", calls="")


def choose_progress(*, quiet: bool) -> Progress:
    """Return a moving line for a terminal, or a line every half minute."""
    if quiet:
        return Silence()
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal:
        return TerminalLine()
    return LogLines(lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
