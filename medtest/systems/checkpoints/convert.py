"""Conversion of old checkpoints to files with weights only, for ``medtest weights convert``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from medtest.core.errors import MedtestError, Mistake, UserMistakes, typed_mistake
from medtest.systems.checkpoints.checkpoint import draft_of
from medtest.systems.checkpoints.unpickle import MARK
from medtest.systems.files import file_mistakes, user_path

if TYPE_CHECKING:
    from torch import Tensor

TARGETS = (".safetensors", ".pth")
SECONDS = 600


def convert(source: str, target: str, *, trusted: Callable[[], bool], overwrite: bool = False) -> Mapping[str, Tensor]:
    """Write a checkpoint's weights, under their official names, to a file that can be read without running code.

    A file that ``weights_only`` can read is converted without asking. Any other is fully unpickled in a separate
    process, which runs its code, if the user trusts it.

    Args:
        source: The old checkpoint.
        target: The new file; ``.safetensors`` or ``.pth``.
        trusted: Asks the user whether to trust the file; called once, and only if it must be fully unpickled.
        overwrite: Whether the new file may already exist.

    Returns:
        The weights in the new file.

    Raises:
        UserMistakes: A file is missing or invalid.
        MedtestError: The user does not trust the file, or it yields no weights.
    """
    from medtest.systems.checkpoints.checkpoint import NeedsTrust, read_state, write_state

    mistakes = [*file_mistakes(source, where="command line", key="IN"), *_target_mistakes(source, target, overwrite)]
    if mistakes:
        raise UserMistakes(mistakes)
    old, new = user_path(source), user_path(target)
    try:
        write_state(new, read_state(old))
    except NeedsTrust as error:
        if not trusted():
            raise MedtestError(f"{old.name}: not converted, because you did not confirm that you trust it") from error
        _in_process(old.resolve(), new.resolve())
    return read_state(new)


def _target_mistakes(source: str, target: str, overwrite: bool) -> list[Mistake]:
    new = user_path(target)
    key = "OUT"
    if new.suffix.lower() not in TARGETS:
        return [typed_mistake(key, target, f"a file ({', '.join(TARGETS)})")]
    if new.exists() and user_path(source).exists() and new.samefile(user_path(source)):
        return [typed_mistake(key, target, "another file than the old one")]
    if new.exists() and not overwrite:
        problem = f"{target} (it already exists)"
        return [typed_mistake(key, problem, fix="choose another name, or add --overwrite")]
    if not new.parent.is_dir():
        return [typed_mistake(key, f"{target} (there is no such folder)")]
    return []


def _in_process(old: Path, new: Path) -> None:
    """Unpickle the old file in a separate process, in an empty folder."""
    module = "medtest.systems.checkpoints.unpickle"
    root = Path(__file__).parents[3]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); from {module} import main; sys.exit(main(sys.argv[1:]))"
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(  # noqa: S603 - our own module, in a separate process because it reads an untrusted file
                [sys.executable, "-c", code, str(old), str(new)],
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise MedtestError(f"{old.name}: reading it took more than {SECONDS} s") from error
        finally:
            draft_of(new).unlink(missing_ok=True)  # left over from a process that died
    answers = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]
    try:
        answer = dict(json.loads(answers[-1]))
    except (IndexError, TypeError, ValueError):
        answer = {"error": f"{old.name}: reading it ended with code {done.returncode}: {done.stderr[-300:].strip()}"}
    if "error" in answer:
        raise MedtestError(str(answer["error"]))
