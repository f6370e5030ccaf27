"""The tutorial of docs runs as written, from top to bottom, and so does its notebook."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_server import CommandServer

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of an empty home, with medtest on the path."""
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MEDTEST", "MLFLOW"))}
    return {**clean, "HOME": str(tmp_path), "PATH": search, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tutorial_shows_the_output_of_its_commands(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> None:
    """Files are saved and commands typed in the order of the page; each line of a ```text block was printed before."""
    folder, printed, codes = tmp_path / "tutorial", "", {}
    with CommandServer(tmp_path_factory.mktemp("c") / "s", environment) as server:
        environment = server.environment(environment)
        for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            if kind in ("python", "yaml"):
                path = folder / text.partition("\n")[0].removeprefix("# ")
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
            elif kind == "bash":
                for command in text.strip().splitlines():
                    code, output = _type(command, folder if folder.exists() else tmp_path, environment)
                    codes[command], printed = code, printed + output
            elif kind == "text":
                assert [line for line in text.splitlines() if _spaced(line) not in _spaced(printed)] == [], printed
    failed = [command for command, code in codes.items() if code]
    assert [command for command in failed if "target=fixed.py" not in command and "limit=2" not in command] == [], (
        failed
    )
    assert len(failed) == 3, failed  # the worse function twice, and two pictures that can pass no gate
    for name in ("sheet.png", "case/followup.png", "lesions.zip", "relative.zip"):
        assert (folder / name).is_file(), name
    assert (folder / "outputs/compare/fixed-segment-relative-segment/compare.html").is_file()


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _type(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_notebook_runs(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    notebook: Any = nbformat.read(PAGE.with_suffix(".ipynb"), as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "the notebook is kept without outputs"
    client(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output
    )
    for line in ("False 1", "False True", "Exit code 0: relative is no worse than fixed", "data       same: 80 of 80"):
        assert line in printed, printed


def test_the_notebook_shows_the_code_of_the_page() -> None:
    """The suite and the better function are the page's own."""
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(PAGE.with_suffix(".ipynb"), as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    blocks = {text.partition("\n")[0]: text for _, text in BLOCK.findall(PAGE.read_text(encoding="utf-8"))}
    suite = blocks["# mine/lesions.yaml"].partition("\n")[2].strip()
    assert suite in code
    assert blocks["# relative.py"].strip().splitlines()[-1].strip() in code
    assert blocks["# fixed.py"].strip().splitlines()[-1].strip().removeprefix("return grey") in code
