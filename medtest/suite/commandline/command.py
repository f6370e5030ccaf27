"""The typed command for reports and MLflow: without keys and home folders, and separately for each job of a sweep."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

_HOMES = re.compile(r"(/home/|/Users/|[A-Za-z]:[\\/]Users[\\/])[^/\\\s,;:'\"\]})]+")
_MULTIRUN = ("-m", "--multirun")


def typed_command(called: str, typed: Sequence[str], *, hide_paths: bool = False) -> str:
    """Return the typed command without keys and home folders, for repeating it from a report.

    Paths in the user's home begin with ``~``, which medtest accepts, and paths below the working folder are relative to
    it; names of other home folders are removed.

    Args:
        called: Name of the command.
        typed: Its arguments as typed.
        hide_paths: Remove all paths and addresses, for hashed seed ids: folders may be named after patients.
    """
    from medtest.suite.commandline.overrides import unquoted

    tokens: list[str] = []
    for typed_token in typed:
        token = without_keys(typed_token)
        key, equals, value = token.partition("=")
        plain = unquoted(value) if equals else value
        last = key.rpartition(".")[2]
        local = plain.startswith(("/", "~", "\\")) or ":" in plain[:3] or ".." in plain
        if equals and last == "uri":
            tokens.append(f"{key}=URI")
        elif not hide_paths:
            tokens.append(_without_home(token))
        elif local and equals and last != "target":
            tokens.append(f"{key}=PATH")
        elif "://" in token or (local and equals) or token.startswith(("/", "~")) or "{" in token and "/" in token:
            tokens.append(f"{key}=…" if equals else "PATH")
        else:
            tokens.append(token)
    return " ".join([called, *(_quoted(token) for token in tokens)])


def _without_home(token: str) -> str:
    working, home = str(Path.cwd()).rstrip("/\\"), str(Path.home()).rstrip("/\\")
    if working and working != home:
        token = re.sub(rf"(?<![\w./~-]){re.escape(working)}/(?=[^/\s])", "", token)
    if home:
        token = re.sub(rf"(?<![\w./~-]){re.escape(home)}(?=[/\\\s,;:'\"\]}})]|$)", "~", token)
    return _HOMES.sub(r"\1…", token)


def _quoted(token: str) -> str:
    """Quote a token for the shell; ``~`` and ``…`` need no quotes inside of one."""
    return token if re.fullmatch(r"[\w@%+=:,./~…-]+", token) and not token.startswith("~") else shlex.quote(token)


def without_keys(token: str) -> str:
    """Return a token without secret or possibly secret values; the name of a key's environment variable stays."""
    from medtest.api.redact import names_variable, redact, without_users
    from medtest.suite.commandline.overrides import holds_key, unquoted

    key, equals, value = token.partition("=")
    if equals and holds_key(token) and not names_variable(unquoted(value)):
        return f"{key}=…"
    return redact(without_users(token, "…@"))


def job_tokens(typed: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """Return the arguments to run one job of a sweep alone.

    Args:
        typed: The sweep as typed, including flags.
        overrides: The job's overrides, as written by Hydra.
    """
    from medtest.suite.commandline.overrides import set_value

    values = dict(key_and_value for override in overrides if (key_and_value := set_value(override)) is not None)
    tokens: list[str] = []
    for token in typed:
        if token in _MULTIRUN or token.lstrip("+").startswith(("hydra.", "hydra/")):
            continue
        tokens.append(_of_the_job(token, values))
    return tokens


def _of_the_job(token: str, values: dict[tuple[str, ...], str]) -> str:
    """Return a token with the job's value in place of several."""
    from medtest.suite.commandline.overrides import is_sweep, prepare, typed_key, unquoted

    overrides = [] if token.startswith("-") or "=" not in token else prepare([token], multirun=True).overrides
    if not any(is_sweep(override) for override in overrides):
        return token
    value = values.get(typed_key(token))
    return token if value is None else f"{token.partition('=')[0]}={unquoted(value)}"
