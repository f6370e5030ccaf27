"""After a run, before its tables: what the parser could not read is put to a judge, where the command names one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from medtest.errors import SEVERITY_ORDER, ExitCode
from medtest.readers.judge import Readings
from medtest.results.answers.readings import COLUMNS, unread_in
from medtest.results.records.records_io import Records
from medtest.runner.run import SHARED_ANSWERS

if TYPE_CHECKING:
    from medtest.readers.judge import Judge
    from medtest.runner import RunOutcome
    from medtest.suite.model import Invocation

_EVERY_SECONDS = 5.0
_RECORD_COLUMNS = ("dataset", "seed_id", "relation", "rule", "verdict", *COLUMNS)


def judged(
    judge: Judge, invocation: Invocation, outcome: RunOutcome, out: Console
) -> tuple[dict[str, Readings], RunOutcome]:
    """Return what a judge read of each system's answers, by the system's name, and the outcome with what it says.

    Args:
        judge: The judge.
        invocation: How the run was called.
        outcome: What the runner gave; its folders are locked.
        out: Is told who reads how much.
    """
    found: dict[str, Readings] = {}
    notices, stopped = list(outcome.notices), outcome.stopped
    shared = invocation.home / "outputs" / SHARED_ANSWERS
    for system in outcome.systems:
        unread = unread_in(Records.read(system.folder, _RECORD_COLUMNS, outcome.asked))
        if unread and stopped is ExitCode.INTERRUPTED:
            found[system.record_name] = Readings(judge=judge.name)
            notices.append(f"{system.record_name}: {judge.name} was stopped before it.")
            continue
        if not unread:
            found[system.record_name] = Readings(judge=judge.name)
            notices.append(f"{system.record_name}: medtest read every answer; {judge.name} was not asked.")
            continue
        out.print(
            f"{system.record_name}: {len(unread):,} answers to be read by a judge. {judge.notice()}",
            markup=False,
            soft_wrap=True,
        )
        with _shown(out, quiet=invocation.quiet) as progress:
            readings = judge.read(
                unread,
                system.folder,
                shared,
                cache=invocation.cache,
                stopping=lambda: _stopping(out),
                progress=progress,
            )
        found[system.record_name] = readings
        notices.append(f"{system.record_name}: {_said(readings, len(unread))}")
        if readings.account:
            notices.append(f"{system.record_name}: {readings.account}")
        if readings.problem:
            notices.append(f"{system.record_name}: {readings.problem}")
            stopped = min(stopped, readings.code, key=SEVERITY_ORDER.index)
    return found, replace(outcome, notices=tuple(notices), stopped=stopped)


def _stopping(out: Console) -> None:
    out.print("Stopping: calls under way are let end; Ctrl-C again gives them up.", markup=False)


@contextmanager
def _shown(out: Console, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield what shows how the calls stand: a line that changes on a terminal, else a line every few seconds."""
    if quiet:
        yield lambda line: None
        return
    shown = Console(stderr=True)
    if shown.is_terminal and not shown.is_dumb_terminal:
        with shown.status("judge") as status:
            yield lambda line: status.update(f"judge: {escape(line)}")
        return
    last = time.monotonic()

    def every_few_seconds(line: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_SECONDS:
            last = time.monotonic()
            out.print(f"judge: {line}", markup=False)

    yield every_few_seconds


def _said(readings: Readings, asked: int) -> str:
    states = [reading.state.value for reading in readings.found.values()]
    doubted = sum(bool(reading.doubt) for reading in readings.found.values())
    read = sum(state != "unparsed" for state in states)
    words = f"{readings.judge} read {read:,} of {asked:,} answers in which medtest finds no value"
    if doubted:
        words += "; 1 reading is not believed" if doubted == 1 else f"; {doubted:,} readings are not believed"
    return f"{words} ({_paid(readings)}); tables/answers_judged.csv has each."


def _paid(readings: Readings) -> str:
    """Return what was paid now; what was asked in an earlier session or run was paid then."""
    if not readings.calls:
        return "nothing was paid now" + ("" if readings.problem else ": all were asked before")
    calls = "1 call" if readings.calls == 1 else f"{readings.calls:,} calls"
    if readings.paid_usd is None:
        return calls
    earlier = (readings.cost_usd or 0.0) - readings.paid_usd
    return f"{calls}, ${readings.paid_usd:.4f}" + (f"; ${earlier:.4f} was paid before" if earlier > 0 else "")
