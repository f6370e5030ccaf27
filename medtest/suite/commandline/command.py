"""What was typed, as reports and MLflow show it: without keys and home folders, and for each job of a sweep its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

_HOMES = re.compile(r"(/home/|/Users/|[A-Za-z]:[\\/]Users[\\/])[^/\\\s,;:'\"\]})]+")
_MULTIRUN = ("-m", "--multirun")


def typed_command(called: str, typed: Sequence[str], *, hide_paths: bool = False) -> str:
    """Return the command as typed, for "to do this again" in reports: keys and home folders taken out.

    What lies in the user's home begins with ``~``, which medtest reads as well, and what lies below the working folder
    is relative to it; other people's homes have no name.

    Args:
        called: How the command is called.
        typed: What was typed after it.
        hide_paths: Take every path and address out: ids of seeds are hashed, and folders may be called as patients are.
    """
    from medtest.suite.commandline.overrides import unquoted

    shown: list[str] = []
    for typed_token in typed:
        token = without_keys(typed_token)
        key, equals, value = token.partition("=")
        plain = unquoted(value) if equals else value
        last = key.rpartition(".")[2]
        local = plain.startswith(("/", "~", "\\")) or ":" in plain[:3] or ".." in plain
        if equals and last == "uri":
            shown.append(f"{key}=URI")
        elif not hide_paths:
            shown.append(_without_home(token))
        elif local and equals and last != "target":
            shown.append(f"{key}=PATH")
        elif "://" in token or (local and equals) or token.startswith(("/", "~")) or "{" in token and "/" in token:
            shown.append(f"{key}=…" if equals else "PATH")
        else:
            shown.append(token)
    return " ".join([called, *(_quoted(token) for token in shown)])


def _without_home(token: str) -> str:
    here, own = str(Path.cwd()).rstrip("/\\"), str(Path.home()).rstrip("/\\")
    if here and here != own:
        token = re.sub(rf"(?<![\w./~-]){re.escape(here)}/(?=[^/\s])", "", token)
    if own:
        token = re.sub(rf"(?<![\w./~-]){re.escape(own)}(?=[/\\\s,;:'\"\]}})]|$)", "~", token)
    return _HOMES.sub(r"\1…", token)


def _quoted(token: str) -> str:
    """Return a token as a shell takes it; ``~`` and ``…`` need no quotes inside of one."""
    return token if re.fullmatch(r"[\w@%+=:,./~…-]+", token) and not token.startswith("~") else shlex.quote(token)


def without_keys(token: str) -> str:
    """Return what was typed without what is a key or may be one; the name of a key's variable stays."""
    from medtest.api.redact import names_variable, redact, without_users
    from medtest.suite.commandline.overrides import holds_key, unquoted

    key, equals, value = token.partition("=")
    if equals and holds_key(token) and not names_variable(unquoted(value)):
        return f"{key}=…"
    return redact(without_users(token, "…@"))


def job_tokens(typed: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """Return what one would type to have one job of a sweep alone.

    Args:
        typed: The sweep as typed, flags among it.
        overrides: The job's overrides, as Hydra wrote them.
    """
    from medtest.suite.commandline.overrides import set_value

    values = dict(found for override in overrides if (found := set_value(override)) is not None)
    kept: list[str] = []
    for token in typed:
        if token in _MULTIRUN or token.lstrip("+").startswith(("hydra.", "hydra/")):
            continue
        kept.append(_of_the_job(token, values))
    return kept


def _of_the_job(token: str, values: dict[tuple[str, ...], str]) -> str:
    """Return the token with the value that the job has, where it names several."""
    from medtest.suite.commandline.overrides import is_sweep, prepare, typed_key, unquoted

    overrides = [] if token.startswith("-") or "=" not in token else prepare([token], multirun=True).overrides
    if not any(is_sweep(override) for override in overrides):
        return token
    value = values.get(typed_key(token))
    return token if value is None else f"{token.partition('=')[0]}={unquoted(value)}"
