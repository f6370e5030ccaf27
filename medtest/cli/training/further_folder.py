"""What the further trainings of every kind of network share: their suite, their folder, their log, the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from medtest.cli.training.further_tokens import OWN, SHORT, FurtherRequest
from medtest.errors import MedtestError, Mistake, NotTracked

if TYPE_CHECKING:
    from medtest.suite.compose import Loaded
    from medtest.suite.model import Invocation, Suite
    from medtest.training.further.log import FurtherLog

FOLDER = "further-training"


def load_suite_of(request: FurtherRequest, config_dirs: Sequence[Path]) -> Loaded:
    """Return the suite that the network is tested by, with what was typed for its run.

    Raises:
        UserMistakes: It cannot be used.
    """
    from medtest.cli.typed import own_keys
    from medtest.suite.compose import load

    overrides = [*request.overrides, f"model={request.model}", *([f"data={request.test}"] if request.test else [])]
    with own_keys(*OWN, *SHORT):
        return load(request.suite, overrides, config_dirs=config_dirs)


def folder_of(request: FurtherRequest, home: Path, *, network: str, recipe: str) -> Path:
    """Return the folder of a training: the one that was typed, else that of its network and recipe below ``home``."""
    return request.out or home / "outputs" / FOLDER / f"{network}-{recipe}"


@contextmanager
def locked_folder(out: Path, *, fresh: bool, console: Console) -> Iterator[None]:
    """Hold a training's folder; with ``fresh`` an earlier training is moved aside, whole, and never deleted.

    Raises:
        UserMistakes: It is a file.
        FolderInUse: Another process holds it.
        OutputProblem: It cannot be made.
    """
    from medtest.runner.folder import FolderLock, output_problems

    if out.exists() and not out.is_dir():
        raise Mistake(where="command line", key="out", found=f"{out.name}, a file", allowed="a folder").as_error()
    lock = FolderLock(out)
    lock.acquire()
    try:
        moved = lock.move_aside() if fresh else None
        if moved is not None:
            console.print(f"The earlier training was moved to {moved.name}.", markup=False, soft_wrap=True)
        with output_problems(out):
            out.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        lock.release()


@contextmanager
def tracked(
    suite: Suite, invocation: Invocation, out: Path, *, network: str, recipe: str, console: Console
) -> Iterator[FurtherLog | None]:
    """Give the training's runs in MLflow, None where nothing is tracked, and mark them as they end.

    Raises:
        NotTracked: The store cannot be made or reached.
    """
    log = _open_log(suite, invocation, out, network=network, recipe=recipe)
    try:
        yield log
    except BaseException:
        _end_log(log, failed=True, console=console)
        raise
    _end_log(log, failed=False, console=console)


def _open_log(suite: Suite, invocation: Invocation, out: Path, *, network: str, recipe: str) -> FurtherLog | None:
    if not invocation.track:
        return None
    from medtest.training.further.log import FurtherLog

    tags = {
        "suite": suite.name,
        "suite_version": suite.version,
        "network": network,
        "recipe": recipe,
        "command": invocation.command,
    }
    return FurtherLog(out, network, home=invocation.home, uri=invocation.tracking_uri, experiment=suite.name, tags=tags)


def _end_log(log: FurtherLog | None, *, failed: bool, console: Console) -> None:
    """Mark the runs; a store that fails now is told and fails nothing."""
    if log is None:
        return
    try:
        if failed:
            log.end_training(failed=True)
        log.close(failed=failed)
    except NotTracked as problem:
        console.print(str(problem), markup=False, soft_wrap=True)


def device_of(wanted: str) -> str:
    """Return the device that ``device=`` means.

    Raises:
        MedtestError: It is not there.
    """
    import torch

    if wanted == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise MedtestError(f"device={wanted}: torch sees no CUDA device here; device=cpu trains too")
    return wanted


def flat(options: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return nested options by dotted keys."""
    found: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{above}{key}.")
        else:
            found[above + key] = value
    return found
