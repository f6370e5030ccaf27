"""Completion of ``medtest …`` and ``python run.py …`` by the Tab key in a real Bash."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from medtest.suite.commandline.completion import completions

ROOT = Path(__file__).parents[3]
PROMPT = "ready> "


class Bash:
    """An interactive Bash on a pseudo-terminal."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.terminal, other = pty.openpty()
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=other,
            stdout=other,
            stderr=other,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(other)

    def type(self, text: str, until: str, seconds: float = 60.0) -> str:
        """Type text and return what the terminal shows until a pattern appears."""
        os.write(self.terminal, text.encode())
        shown, end = "", time.monotonic() + seconds
        while not re.search(until, shown):
            assert time.monotonic() < end, f"{text!r} showed {shown!r}"
            if select.select([self.terminal], [], [], 0.2)[0]:
                shown += os.read(self.terminal, 65536).decode(errors="replace")
        return shown

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bash]:
    """Start a Bash in a checkout, with the completions that the docs install."""
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    folder = tmp_path_factory.mktemp("bin")
    for name, arguments in (("medtest", "-m medtest"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
        (folder / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "TERM": "dumb",
        "PS1": PROMPT,
        "INPUTRC": "/dev/null",
        "COLUMNS": "400",
        "LINES": "50",
    }
    shell = Bash(ROOT, environment)
    shell.type("bind 'set enable-bracketed-paste off'; echo be''gun\n", "begun")
    shell.type("medtest --install-completion; source ~/.bashrc; echo st''ored\n", "stored")
    shell.type('eval "$(python run.py -sc install=bash)"; echo loaded\n', "loaded")
    yield shell
    shell.close()


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("medtest alp\t", "medtest alpha-sigma "),
        ("medtest list rel\t", "medtest list relations "),
        ("medtest run suite=polyp_seg_pu\t", "medtest run suite=polyp_seg_published "),
        ("medtest run suite=polyp_seg checkpoint=x relations.sat\t", "relations.saturation."),
        ("medtest run suite=polyp_seg oracles.primary.thr\t", "oracles.primary.threshold=0.25 "),
        ("medtest sheet suite=polyp_seg model=sa\t", "model=sanet "),
        ("medtest check polyp_seg_pu\t", "medtest check polyp_seg_published "),
        ("python run.py suite=polyp_seg_pu\t", "python run.py suite=polyp_seg_published"),
        ("python run.py suite=polyp_seg checkpoint=x relations.sat\t", "relations.saturation."),
    ],
)
def test_the_tab_key_completes(bash: Bash, typed: str, completed: str) -> None:
    shown = bash.type(typed, re.escape(completed))
    bash.type("\x15echo re''set\n", "reset")  # Ctrl-U clears the line
    assert completed in shown


def test_the_tab_key_lists_possible_continuations(bash: Bash) -> None:
    shown = bash.type("python run.py suite=polyp_seg model=ssformer_\t\t", "ssformer_s")
    bash.type("\x15echo re''set\n", "reset")
    assert "ssformer_l" in shown


def test_bash_splits_tokens_at_the_equals_sign() -> None:
    whole = completions([], "suite=polyp_seg_p")
    assert whole == ["suite=polyp_seg_paper", "suite=polyp_seg_published"]
    values = [token.removeprefix("suite=") for token in whole]
    assert completions(["suite", "="], "polyp_seg_p") == values
    assert set(values) < set(completions(["suite"], ""))  # click drops an "=" under the cursor
    assert completions(["suite", "=", "polyp_seg", "only", "=", "relation", ":", "blur"], "devi") == ["device=auto"]


def test_a_key_without_alternative_comes_with_its_values() -> None:
    assert {"suite=polyp_seg", "suite=wce"} < set(completions([], "sui"))
    assert completions(["suite=polyp_seg"], "rela")[0].startswith("relations.")


def test_mistyped_tokens_have_no_completions(tmp_path: Path) -> None:
    assert completions(["suite=polyp_seg", "model=[pranet,"], "limi") == []
    assert completions(["suite=nosuch"], "relations.b") == []


@pytest.mark.slow
def test_suites_of_a_folder_are_completed(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text("extends: polyp_seg\n", encoding="utf-8")
    assert completions([f"suite_dir={tmp_path}"], "suite=our") == ["suite=ours"]
