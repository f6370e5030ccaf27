"""``medtest freeze``: write the plan of a suite before its first case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from medtest.cli.terminal import bar, say
from medtest.cli.typed import own_keys, split_tokens
from medtest.core.errors import typed_error
from medtest.core.files.paths import path_from_here


def freeze_plan(
    tokens: Sequence[str], *, config_dirs: Sequence[Path], console: Console, key: Path | None = None
) -> None:
    """Freeze a suite's plan and print where it is.

    Args:
        tokens: ``suite=NAME`` with its overrides, ``to=FILE.json``.
        config_dirs: Folders like ``conf/``.
        console: Console for the result.
        key: Private key that signs the plan; None for no signature.

    Raises:
        UserMistakes: The suite has mistakes, or the file exists.
        MedtestError: A seed cannot be loaded, or the file cannot be written.
    """
    from medtest.evidence.freezing import freeze
    from medtest.evidence.signing import check_key, sign
    from medtest.session.runs import invocation_of
    from medtest.suite.compose import load

    name, overrides, own, words = split_tokens(tokens, "to")
    if words:
        raise typed_error("", found=" ".join(words), allowed="suite=NAME, to=FILE.json and key=value tokens")
    if key is not None:
        check_key(key.expanduser())
    with own_keys("to"):
        loaded = load(name, overrides, config_dirs=config_dirs, for_run=True)
    to = Path(own["to"]).expanduser() if own.get("to") else None
    with bar(console, "seeds") as progress:
        path, plan = freeze(loaded, invocation_of(loaded), to=to, progress=progress)
    gates, seeds = len(plan["gates"]), len(plan["data"]["seeds"])
    say(
        console,
        f"{path_from_here(path)}: {plan['name']} {plan['version']}, {seeds:,} seeds, "
        f"{gates} {'gate' if gates == 1 else 'gates'}, frozen at {plan['frozen_at']}",
    )
    for digest, count in plan["cases_before"].items():
        say(console, f"Not before the first case: the run {digest} already holds {count:,} finished cases.")
    say(console, f"SHA-256 {plan['hash']}")
    if key is not None:
        say(console, f"Signature: {path_from_here(sign(path, key.expanduser()))}")
