"""Execution of a checked suite: run it, finish its folders, and print the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from medtest.api.stops import duration
from medtest.cli.terminal import console, say
from medtest.core.errors import ExitCode, NotTracked
from medtest.core.files.paths import path_from_here
from medtest.report.ci import JUNIT
from medtest.session.runs import execute
from medtest.suite.model import Invocation, Suite

if TYPE_CHECKING:
    from medtest.report.finish import Finished
    from medtest.report.tracking import Parents
    from medtest.runner.reporting.outcome import RunOutcome
    from medtest.suite.compose import Loaded

_VERDICT: dict[ExitCode, str] = {
    ExitCode.GATE_FAILED: "a gate failed",
    ExitCode.TOO_MANY_ERRORS: "too many cases have errors, or a judge read no answer; see above and report.html",
    ExitCode.NOT_TRACKED: "results are complete, but MLflow did not accept them",
    ExitCode.BUDGET: "a budget or a server limit stopped the run; see above how to continue",
    ExitCode.INTERRUPTED: "interrupted; the same command continues",
}


def run_and_finish(
    loaded: Loaded, invocation: Invocation, *, parents: Parents | None = None, sweep: bool = False
) -> Finished:
    """Run a suite, write tables, report and MLflow under the folders' locks, and print the results.

    The folder's records are judged by the suite's own oracle; tables and report by the one on the command line.

    Args:
        loaded: The checked suite.
        invocation: Options of the run.
        parents: Parent runs from an earlier job of the sweep.
        sweep: Whether this is a job of a sweep.

    Raises:
        MedtestError: The run failed; finished cases are kept.
    """
    out, suite = console(), loaded.suite
    printed: list[str] = []

    def announced(line: str) -> None:
        say(out, line)
        printed.append(line)

    done = execute(loaded, invocation, announce=announced, parents=parents, sweep=sweep)
    _print_results(out, suite, invocation, done.outcome, done.finished, printed)
    return done.finished


def close_parents(home: Path, parents: Parents, *, failed: bool) -> bool:
    """End the parent runs of a sweep; return False if the store could not be reached."""
    from medtest.report.mlflow.tracked import close_parents as close

    try:
        close(home, parents, failed=failed)
    except NotTracked:
        return False
    return True


# --- printed output -----------------------------------------------------------------------------------------------


def _print_results(
    out: Console, suite: Suite, invocation: Invocation, outcome: RunOutcome, ended: Finished, printed: Sequence[str]
) -> None:
    for notice in outcome.notices:
        if notice not in printed:
            say(out, notice)
    if outcome.interrupted:
        say(out, f"{ended.note}. Finished cases are kept; the same command continues.")
        return
    for item in ended.renderables:
        out.print()
        out.print(item)
    out.print()
    executed = sum(system.cases_executed for system in outcome.systems)
    reused = sum(system.cases_reused for system in outcome.systems)
    cases = "case" if executed == 1 else "cases"
    done = f"{executed:,} {cases} run in {duration(max(1.0, outcome.seconds))}" if executed else "No case to run"
    were = "was" if reused == 1 else "were"
    say(out, done + (f"; {reused:,} {were} finished before" if reused else "") + ".")
    for material in ended.materials:
        if material.partial:
            say(out, f"{material.system}: partial, {material.partial}")
    for path in ended.reports:
        say(out, f"Report:  {path_from_here(path)}")
        if invocation.junit:
            say(out, f"JUnit:  {path_from_here(path.with_name(JUNIT))}")
    if ended.comparison is not None:
        say(out, f"Comparison:  {path_from_here(ended.comparison)}")
    if invocation.track and ended.parents is not None:
        say(out, f"MLflow:  {_how_to_open(invocation)}")
    for line in ended.notices:
        say(out, line)
    for problem in ended.problems:
        say(out, problem)
    if invocation.shard is not None:
        say(out, f"{ended.note[:1].upper()}{ended.note[1:]}.")
        for shard_system in outcome.systems:
            say(out, f"When all shards are done:  medtest merge {path_from_here(shard_system.folder.parent.parent)}")
        if ended.code is ExitCode.OK:
            say(out, "Exit code 0: medtest merge judges the gates.")
            return
    say(out, _verdict(suite, ended.code))


def _verdict(suite: Suite, code: ExitCode) -> str:
    if code is ExitCode.OK:
        gates = len(suite.gates)
        held = "no gate is set" if not gates else "the gate passed" if gates == 1 else f"all {gates} gates passed"
        return f"Exit code 0: {held}."
    return f"Exit code {int(code)}: {_VERDICT.get(code, 'see above')}."


def _how_to_open(invocation: Invocation) -> str:
    from medtest.report.tracking import store_uri, where

    uri = store_uri(invocation.home, invocation.tracking_uri)
    place = where(invocation.home, uri)
    if place.startswith("mlruns/"):
        in_checkout = Path("Makefile").is_file() and Path("run.py").is_file()
        return f"{'make ui' if in_checkout else 'medtest ui'}  (runs of this folder: {place})"
    return place
