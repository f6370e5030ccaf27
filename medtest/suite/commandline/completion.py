"""Completion of typed tokens (``suite=``, ``model=``, ``relations.blur.``) by Hydra."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from medtest.suite.commandline.source import ConfigFolders, open_hydra

_LINE, _POINT = "COMP_LINE", "COMP_POINT"
"""Variables through which a shell passes what was typed, and the position of the cursor in it."""
_CHOICES = ("suite", "model", "tracking", "executor", "hydra/launcher")
_FOLDER = "suite_dir="
_ROUNDS = 4


def completions(words: Sequence[str], word: str) -> list[str]:
    """Return the tokens that an unfinished word may become, sorted.

    A key that has no alternative is returned with its values, so that no shell adds a space after ``suite=``.

    Args:
        words: Tokens before the word.
        word: The word. Bash splits tokens at ``=``: then it is a value, and its key is at the end of ``words``.
    """
    words = [*words, "="] if not word and words and words[-1] in _CHOICES else list(words)  # click drops a last "="
    split = words[-1:] == ["="]
    *before, typed = " ".join([*words, word]).replace(" = ", "=").split(" ")
    folders = [Path(token.removeprefix(_FOLDER)).expanduser() for token in before if token.startswith(_FOLDER)]
    hydra = open_hydra(ConfigFolders(suites=tuple(folders)))
    candidates = [typed]
    for _ in range(_ROUNDS):
        with typed_line([*before, *candidates]), redirect_stdout(StringIO()) as printed:
            hydra.shell_completion(config_name="config", overrides=["query=bash"])
        further = sorted(printed.getvalue().split())
        candidates = further or ([] if candidates == [typed] else candidates)
        if len(further) != 1 or not further[0].endswith(("=", ".")):
            break
    key = typed.partition("=")[0] + "="
    return [candidate.removeprefix(key) for candidate in candidates] if split else candidates


@contextmanager
def typed_line(words: Sequence[str] = ()) -> Iterator[None]:
    """Make a command line the one that Hydra completes, without tokens that Hydra cannot compose.

    Args:
        words: Tokens, the last of them unfinished; by default those that a shell passes.
    """
    before = {name: os.environ.get(name) for name in (_LINE, _POINT)}
    line = before[_LINE] or ""
    *others, word = words or line[: int(before[_POINT] or len(line))].split(" ")
    plain = " ".join(["medtest", *(token for token in others if token.partition("=")[0] in _CHOICES), word])
    os.environ.update({_LINE: plain, _POINT: str(len(plain))})
    try:
        yield
    except (HydraException, OmegaConfBaseException):
        pass  # an unfinished or mistyped token has no completions
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
