"""Jobs of a run: check, plan or run, print the results. A job returns a result and never raises."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from medtest.cli.bootstrap import DEFECT, report_defect
from medtest.cli.run.plan_view import plan_view
from medtest.cli.terminal import console, say
from medtest.core.errors import SEVERITY_ORDER, ExitCode, MedtestError, UserMistakes
from medtest.core.files.paths import home
from medtest.runner.reporting import signals
from medtest.session.runs import check_reference, invocation_of
from medtest.suite.checking.checks import NOTHING
from medtest.suite.commandline.command import job_tokens, typed_command, without_keys
from medtest.suite.commandline.source import ConfigFolders
from medtest.suite.compose import Loaded, needs_data, settle, task_overrides
from medtest.suite.model import Invocation

if TYPE_CHECKING:
    from omegaconf import DictConfig


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """Result of a job.

    Attributes:
        label: Overrides that distinguish it from the other jobs of a sweep.
        code: Exit code.
        status: Name of the exit code.
        note: One more line: location of the report, or first line of the error.
    """

    label: str
    code: int
    status: str
    note: str = ""


_STATUS: dict[int, str] = {
    ExitCode.OK: "done",
    ExitCode.GATE_FAILED: "gate failed",
    ExitCode.MISTAKE: "mistake",
    ExitCode.TOO_MANY_ERRORS: "too many errors",
    ExitCode.NOT_TRACKED: "not tracked",
    ExitCode.BUDGET: "limit reached",
    ExitCode.INTERRUPTED: "interrupted",
    DEFECT: "defect of medtest",
}


@dataclass(kw_only=True)
class HydraJob:
    """Hydra's task function.

    Attributes:
        places: Folders searched for suites and systems.
        called: Command as called.
        typed: Tokens after the command.
        listed: Whether the suites come from a ``glob``. A suite that needs ``data=``, or is for other systems than
            ``model=`` names, is then skipped without an error.
        alone: Whether this is not a sweep.
        results: Results of the jobs of this process.
        parents: MLflow's parent runs of the sweep, created by the first tracked jobs.
        process: Process that created it; a launcher may run jobs elsewhere, on copies of this object.
    """

    places: ConfigFolders
    called: str = ""
    typed: tuple[str, ...] = ()
    listed: bool = False
    alone: bool = True
    results: list[JobResult] = field(default_factory=list)
    parents: Any = None
    process: str = field(default_factory=lambda: _process())

    def __call__(self, cfg: DictConfig) -> JobResult:
        """Run one job."""
        from hydra.core.hydra_config import HydraConfig

        hydra: Any = HydraConfig.get()
        label = _label(task_overrides(hydra))
        signals.check()
        if any(result.code == ExitCode.INTERRUPTED for result in self.results):
            code = int(ExitCode.INTERRUPTED)
            self.results.append(JobResult(label=label, code=code, status="not run", note="interrupted before"))
            return self.results[-1]
        if not self.alone:
            console().rule(escape(label), align="left")
        result = self._guarded(cfg, hydra, label)
        self.results.append(result)
        if self.process != _process():  # a launcher's process: no other process knows its parents
            self.close()
            self.parents = None
        return result

    def interrupted(self) -> list[JobResult]:
        """Return the results so far and one for the interrupted job."""
        code = int(ExitCode.INTERRUPTED)
        return [*self.results, JobResult(label="(the interrupted job)", code=code, status=_STATUS[code])]

    def close(self) -> None:
        """End the sweep's parent runs in MLflow."""
        if self.parents is None:
            return
        from medtest.cli.run.finish import close_parents

        good = (int(ExitCode.OK), int(ExitCode.GATE_FAILED))
        if not close_parents(home(), self.parents, failed=any(result.code not in good for result in self.results)):
            sys.stderr.write(
                "MLflow cannot be reached to end the parent run of the sweep; results on disk are complete.\n"
            )

    def _guarded(self, cfg: DictConfig, hydra: Any, label: str) -> JobResult:
        try:
            return self._do(cfg, hydra, label)
        except MedtestError as error:
            from medtest.api.redact import redact

            message = redact(error)  # the message may contain a key that was typed in the wrong place
            sys.stderr.write(f"{message}\n")
            return _result(label, int(error.exit_code), message.splitlines()[0])
        except Exception as error:
            if signals.given():
                raise KeyboardInterrupt from error
            return _result(label, report_defect(), type(error).__name__)

    def _do(self, cfg: DictConfig, hydra: Any, label: str) -> JobResult:
        try:
            loaded = settle(cfg, hydra, self.places, for_run=not self.listed)
        except UserMistakes as error:
            misfits = [mistake for mistake in error.mistakes if mistake.misfit]
            unnamed = any(mistake.found == NOTHING for mistake in misfits)
            if not (self.listed and misfits and (unnamed or _names_model(hydra))):
                raise
            note = "it needs model=NAME" if unnamed else f"it tests other systems: {misfits[0].allowed}"
            return JobResult(label=label, code=int(ExitCode.OK), status="not run", note=note)
        if self.listed and loaded.options.data is None and needs_data(loaded.suite):
            return JobResult(label=label, code=int(ExitCode.OK), status="not run", note="it needs data=PATH")
        invocation = self._invocation(loaded, hydra)
        if loaded.options.plan:
            from medtest.cli.run.power_view import power_view
            from medtest.runner.forecast import forecast
            from medtest.suite.reading.outline import outline

            check_reference(loaded.suite, invocation)
            planned = outline(loaded.suite, invocation)
            shown = power_view(planned, loaded.options.power, invocation.home)
            console().print(plan_view(planned))
            for again in forecast(loaded.own, invocation):
                say(console(), again.line)
            if shown is not None:
                console().print()
                console().print(shown)
            if loaded.reader is not None and loaded.reader.second:
                say(console(), f"Judge: {loaded.reader.notice()} {loaded.reader.quote()}")
            for consumer, needs in _by_who(loaded.needed):
                say(console(), f"{consumer}: a run needs {needs} (a plan sends nothing).")
            return _result(label, int(ExitCode.OK), "planned")
        from medtest.cli.run.finish import run_and_finish

        ended = run_and_finish(loaded, invocation, parents=self.parents, sweep=not self.alone)
        self.parents = ended.parents or self.parents
        return _result(label, int(ended.code), ended.note)

    def _invocation(self, loaded: Loaded, hydra: Any) -> Invocation:
        hide = loaded.suite.privacy.seed_ids == "hashed"
        whole = typed_command(self.called, self.typed, hide_paths=hide)
        if self.alone:
            return invocation_of(loaded, whole)
        own = typed_command(self.called, job_tokens(self.typed, task_overrides(hydra)), hide_paths=hide)
        return invocation_of(loaded, own, sweep_command=whole)


def _process() -> str:
    return f"{platform.node()}/{os.getpid()}"


def _by_who(needed: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """Return the needs of each system or judge for a run, joined."""
    by_consumer: dict[str, list[str]] = {}
    for consumer, need in needed:
        by_consumer.setdefault(consumer, []).append(need)
    return [(consumer, " and ".join(sorted(each))) for consumer, each in by_consumer.items()]


def _names_model(hydra: Any) -> bool:
    return any(override.startswith("model=") for override in task_overrides(hydra))


def gravest(codes: Iterable[int]) -> int:
    """Return the most severe of several exit codes; a defect of medtest ranks right after an interruption."""
    order = [int(code) for code in SEVERITY_ORDER]
    order.insert(1, DEFECT)
    return min(codes, key=lambda code: order.index(code) if code in order else 1, default=int(ExitCode.OK))


def show_summary(results: list[JobResult]) -> None:
    """Print one line for each job of a sweep."""
    table = Table(
        title=f"{len(results)} {'job' if len(results) == 1 else 'jobs'}",
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    table.add_column("#", justify="right")
    table.add_column("job", overflow="fold")
    table.add_column("status", no_wrap=True)
    table.add_column("", overflow="fold")
    colours = {0: "green", 1: "yellow"}
    for number, result in enumerate(results):
        colour = "dim" if result.status == "not run" else colours.get(result.code, "red")
        table.add_row(
            str(number), escape(result.label), f"[{colour}]{escape(result.status)}[/{colour}]", escape(result.note)
        )
    out = console()
    out.print()
    out.print(table)


def _label(overrides: Iterable[str]) -> str:
    plain = [
        re.sub(r"^\+\+(chosen\.|system_(?=name=))?|(?<=\.)_id_(?=\d)", "", without_keys(str(override)))
        for override in overrides
    ]
    shown = [re.sub(r"='([\w.-]+)'$", r"=\1", override) for override in plain]
    return " ".join(shown) or "(no overrides)"


def _result(label: str, code: int, note: str = "") -> JobResult:
    return JobResult(label=label, code=code, status=_STATUS.get(code, f"exit code {code}"), note=note)
