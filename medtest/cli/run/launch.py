"""Command line of a run: tokens → Hydra → jobs → exit code.

``run.py`` and ``medtest run`` call :func:`main`. The help is printed before heavy imports. Hydra composes and sweeps.
Every job (:mod:`medtest.cli.run.jobs`) returns a result instead of raising or exiting, so that no job ends the others
of a sweep.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from medtest.cli.bootstrap import quiet_libraries, report_defect, require_opencv
from medtest.core.errors import ExitCode, MedtestError, Mistake, UserMistakes, nearest_name, typed_error
from medtest.runner.reporting import signals

if TYPE_CHECKING:
    import argparse

    from medtest.cli.run.jobs import HydraJob, JobResult
    from medtest.suite.commandline.overrides import Prepared
    from medtest.suite.commandline.source import ConfigFolders

HELP = Path(__file__).with_name("help.txt")
"""Output of ``--help``, as plain text that is printed without delay."""
_FLAGS = ("--help", "--version", "--multirun", "--config-dir", "--hydra-help", "--cfg", "--info", "--shell-completion")
_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def main(argv: Sequence[str] | None = None, *, command: str = "") -> int:
    """Run a command line and return the exit code; mistakes of the user never cause an exception or a traceback.

    Args:
        argv: Arguments after the command; ``sys.argv`` by default.
        command: Command as called, for the help; guessed by default.
    """
    with signals.handled():
        try:
            return _guarded(argv, command)
        except KeyboardInterrupt:
            return signals.report_interrupt()


def _guarded(argv: Sequence[str] | None, command: str) -> int:
    typed = list(sys.argv[1:] if argv is None else argv)
    called = command or _called_as()
    if {"-h", "--help"} & set(typed):
        sys.stdout.write(HELP.read_text(encoding="utf-8").format(command=called))
        return ExitCode.OK
    if "--version" in typed:
        from medtest.core import __version__

        sys.stdout.write(f"medtest {__version__}\n")
        return ExitCode.OK
    quiet_libraries()
    try:
        require_opencv()
        return _main(typed, called)
    except MedtestError as error:
        from medtest.api.redact import redact

        sys.stderr.write(f"{redact(error)}\n")
        return error.exit_code
    except BrokenPipeError:  # output piped into head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception:  # noqa: BLE001 - Python's exit code 1 would mean that a gate failed
        return signals.report_interrupt() if signals.given() else report_defect()


def _called_as() -> str:
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else ""
    return f"python {name}" if name.endswith(".py") and name != "__main__.py" else "medtest run"


def _main(typed: list[str], called: str) -> int:
    from medtest.suite.commandline.overrides import folders, prepare
    from medtest.suite.commandline.source import ConfigFolders

    parser = _parser(typed)
    args = parser.parse_intermixed_args(typed)
    sweep = bool(args.multirun) or "hydra.mode=MULTIRUN" in args.overrides
    mistakes: list[Mistake] = []
    configs = folders("--config-dir", [args.config_dir] if args.config_dir else [], mistakes)
    ready = prepare(args.overrides, multirun=sweep, configs=configs)
    mistakes = [*ready.mistakes, *mistakes]
    suites = folders("suite_dir", ready.suite_folders, mistakes)
    if mistakes:
        raise UserMistakes(mistakes)
    places = ConfigFolders(suites=suites, configs=configs)
    if args.hydra_help or args.cfg or args.info is not None or args.shell_completion:
        return _run_hydra_flag(args, ready, places, parser)
    from medtest.cli.run.jobs import HydraJob, gravest

    job = HydraJob(
        places=places,
        called=called,
        typed=tuple(typed),
        listed=any(token.startswith("suite=glob(") for token in args.overrides) and sweep,
        alone=not sweep,
    )
    signals.phase("compose")
    results = _sweep(job, ready, places) if sweep else [_single(job, ready, places)]
    return gravest(result.code for result in results)


def _parser(typed: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of medtest's flags and of those passed on to Hydra."""
    import argparse

    def complain(message: str) -> NoReturn:
        flag = next((t for t in typed if t.startswith("-") and t in message), "")
        raise typed_error(
            "",
            flag or message,
            ", ".join(_FLAGS) + ", -m, -h",
            "type everything else as KEY=VALUE, for example suite=polyp_seg",
            nearest=nearest_name(flag, _FLAGS) if flag else None,
        )

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = complain  # type: ignore[method-assign]
    parser.add_argument(
        "overrides", nargs="*", help="KEY=VALUE, for example suite=polyp_seg limit=5; dots separate nested keys"
    )
    parser.add_argument("--help", "-h", action="store_true", help="print this help")
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--run", "-r", action="store_true", help="run one job (default)")
    parser.add_argument(
        "--multirun", "-m", action="store_true", help="run several jobs with Hydra's sweeper and launcher"
    )
    parser.add_argument("--config-dir", "-cd", help="folder of your own configuration, like conf/")
    parser.add_argument("--hydra-help", action="store_true", help="print Hydra's help")
    parser.add_argument(
        "--cfg", "-c", choices=["job", "hydra", "all"], help="print the composed configuration without running"
    )
    parser.add_argument("--resolve", action="store_true", help="with --cfg: resolve interpolations")
    parser.add_argument("--package", "-p", help="with --cfg: print only this block")
    parser.add_argument("--info", "-i", nargs="?", const="all", choices=_INFO, help="print Hydra's information")
    completion = 'completion of keys: eval "$(python run.py -sc install=bash)", or zsh, fish; uninstall=bash'
    parser.add_argument("--shell-completion", "-sc", action="store_true", help=completion)
    return parser


# --- Hydra ------------------------------------------------------------------------------------------------------


def _hydra(places: ConfigFolders) -> Any:
    from medtest.suite.commandline.source import open_hydra

    # The launcher's log may show keys typed in the wrong place; medtest prints its own line per job.
    logging.getLogger("hydra").setLevel(logging.ERROR)
    return open_hydra(places)


def _with_rephrased_errors(places: ConfigFolders, do: Any) -> Any:
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from medtest.suite.commandline.words import rephrase

    try:
        return do()
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise rephrase(error, places) from error


def _single(job: HydraJob, ready: Prepared, places: ConfigFolders) -> JobResult:
    hydra = _hydra(places)
    returned = _with_rephrased_errors(
        places,
        lambda: hydra.run(config_name="config", task_function=job, overrides=[*ready.overrides, "hydra.mode=RUN"]),
    )
    result: JobResult = returned.return_value
    return result


@contextmanager
def _one_sweep() -> Iterator[None]:
    """Mark all jobs as one sweep, so that they share folders and ``fresh=true`` moves each aside once.

    The mark is an environment variable, so that launchers pass it on to processes.
    """
    from medtest.runner.folder import SWEEP_VARIABLE

    before = os.environ.get(SWEEP_VARIABLE)
    os.environ[SWEEP_VARIABLE] = before or uuid.uuid4().hex
    try:
        yield
    finally:
        if before is None:
            del os.environ[SWEEP_VARIABLE]


def _sweep(job: HydraJob, ready: Prepared, places: ConfigFolders) -> list[JobResult]:
    from medtest.cli.run.jobs import show_summary

    hydra = _hydra(places)
    results: list[JobResult] = []
    with _one_sweep(), tempfile.TemporaryDirectory(prefix="medtest-sweep-") as folder:
        overrides = [*ready.overrides, "hydra.mode=MULTIRUN"]
        if not any(override.startswith("hydra.sweep.dir=") for override in overrides):
            overrides.append(f"hydra.sweep.dir='{folder}'")  # Hydra must write its own notes somewhere
        try:
            returned = _with_rephrased_errors(
                places, lambda: hydra.multirun(config_name="config", task_function=job, overrides=overrides)
            )
            results = [item.return_value for batch in returned for item in batch]
        except UserMistakes as error:  # errors found by Hydra before the first job
            raise UserMistakes(error.mistakes, f"{error.heading}, no job was run") from error
        except KeyboardInterrupt:
            signals.report_interrupt()
            results = job.interrupted()
        finally:
            results = results or job.results
            job.close()
            if results:
                show_summary(results)
    return results


def _run_hydra_flag(
    args: argparse.Namespace, ready: Prepared, places: ConfigFolders, parser: argparse.ArgumentParser
) -> int:
    hydra = _hydra(places)
    overrides = list(ready.overrides)

    def show() -> None:
        if args.hydra_help:
            args.overrides = []  # composes only Hydra's own node
            hydra.hydra_help(config_name="config", args_parser=parser, args=args)
        elif args.cfg:
            hydra.show_cfg("config", overrides, args.cfg, args.package, bool(args.resolve))
        elif args.info is not None:
            hydra.show_info(args.info, config_name="config", overrides=overrides)
        else:
            from medtest.suite.commandline.completion import typed_line

            with typed_line():
                hydra.shell_completion(config_name="config", overrides=args.overrides)

    _with_rephrased_errors(places, show)
    return ExitCode.OK
