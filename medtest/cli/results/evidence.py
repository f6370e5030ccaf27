"""``medtest evidence``, and ``medtest check`` of runs, evidence and frozen plans."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from medtest.cli.terminal import say
from medtest.core.errors import ExitCode, typed_error
from medtest.core.files.paths import home, path_from_here
from medtest.evidence.checking import FileState, check, listed_in
from medtest.report.compared.named import run_here

_MOST_NAMED = 20


def make_evidence(runs: Sequence[str], *, out: Path, key: Path | None, console: Console) -> None:
    """Write the evidence of finished runs and print where it is.

    Args:
        runs: Runs (:func:`medtest.report.compared.named.find_run`).
        out: A folder, or ``FILE.pdf``.
        key: Private key that signs the list of files; None for none.
        console: Console for the result.

    Raises:
        UserMistakes: A run does not exist, a file is in the way, or the key cannot sign.
        MissingSystemLibrary: The extra ``evidence`` is not installed.
        OutputProblem: A run cannot be read, or a file cannot be written.
    """
    from medtest.evidence.writing import write_evidence

    folders = [run_here(name, home(), key="RUN") for name in runs]
    written = write_evidence(
        list(dict.fromkeys(folders)), out.expanduser(), key=None if key is None else key.expanduser()
    )
    for path in written.files:
        say(console, path_from_here(path))
    for notice in written.notices:
        say(console, notice)
    gates = "every gate passed" if written.held else "not every gate passed, or a run has none"
    deviations = "1 deviation" if written.deviations == 1 else f"{written.deviations} deviations"
    say(console, f"{gates[0].upper()}{gates[1:]}; {deviations} (chapter 8).")


def _path(token: str) -> Path:
    return Path(os.path.expanduser(token))  # Path.expanduser refuses tokens such as ~relations.text


def names_lists(tokens: Sequence[str], signers: Path | None) -> bool:
    """Return True if every token of ``medtest check`` names a run, evidence or a frozen plan.

    Raises:
        UserMistakes: Signers are named for something that has no signature.
    """
    others = [token for token in tokens if listed_in(_path(token)) is None]
    if others and signers is not None:
        allowed = "a folder of evidence or of a run, FILE.sha256, or a frozen plan, with --signers"
        raise typed_error("SUITES", found=others[0], allowed=allowed)
    return not others


def check_lists(tokens: Sequence[str], *, signers: Path | None, console: Console) -> ExitCode:
    """Check runs, evidence and frozen plans one by one.

    Args:
        tokens: Their paths.
        signers: Public key or ``allowed_signers`` that signatures must belong to; None accepts any key.
        console: Console for the result.

    Returns:
        ``GATE_FAILED`` (1) if a file was changed or is missing, or a signature is bad, else ``OK``.
    """
    worst = ExitCode.OK
    for token in tokens:
        path = listed_in(_path(token))
        if path is None:
            continue
        checked = check(path, signers=None if signers is None else signers.expanduser())
        bad = [f"{state.value}: {name}" for name, state in checked.files.items() if state is not FileState.SAME]
        mark = "✓" if checked.holds else "✗"
        plan = f"frozen plan, {'unchanged' if checked.whole else 'changed since it was frozen'}"
        content = f"{len(checked.files):,} files" if checked.files else plan
        say(console, f"{mark} {path_from_here(path)}: {content}{f', {len(bad):,} not as listed' if bad else ''}")
        for words in bad[:_MOST_NAMED]:
            say(console, f"    {words}")
        if len(bad) > _MOST_NAMED:
            say(console, f"    … and {len(bad) - _MOST_NAMED:,} more")
        if checked.signature is not None:
            good, words = checked.signature
            say(console, f"    signature {'' if good else 'NOT GOOD: '}{words}")
        elif not path.name.startswith("manifest"):
            say(console, "    not signed")
        worst = worst if checked.holds else ExitCode.GATE_FAILED
    return worst
