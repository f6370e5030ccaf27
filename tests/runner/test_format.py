"""Folders of another format stay unchanged and are reported with one message."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from medtest.cli.results.tables import remake_tables
from medtest.cli.run.launch import main
from medtest.core.errors import OutputProblem
from medtest.report.packs.runs import pack_run
from medtest.runner.folder import FORMAT, RUN_FILE, check_format


def written(folder: Path, **content: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUN_FILE).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize("content", [{"digest": "0"}, {"format": FORMAT + 1}, {"format": "2"}])
def test_another_format_is_refused_and_named(tmp_path: Path, content: dict[str, object]) -> None:
    folder = written(tmp_path / "run", versions={"medtest": "0.1.0"}, **content)
    before = (folder / RUN_FILE).read_bytes()
    with pytest.raises(OutputProblem, match=r"written by medtest 0\.1\.0[\s\S]*move the folder"):
        check_format(folder)
    assert (folder / RUN_FILE).read_bytes() == before


def test_this_format_and_a_new_folder_pass(tmp_path: Path) -> None:
    check_format(tmp_path)
    check_format(written(tmp_path / "run", format=FORMAT))


def test_a_run_leaves_a_folder_of_another_format_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    command = ["suite=denoising", "model=median", "limit=1", "only=severity:1", "track=false"]
    assert main(command) in (0, 1)
    (run,) = tmp_path.glob("outputs/*/*/*/run.json")
    content = json.loads(run.read_text(encoding="utf-8"))
    assert content["format"] == FORMAT
    run.write_text(json.dumps({**content, "format": 1}), encoding="utf-8")
    before = {path: path.read_bytes() for path in run.parent.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main(command) == 2
    assert "format 1" in "".join(capsys.readouterr())
    assert {path: path.read_bytes() for path in run.parent.rglob("*") if path.is_file()} == before
    with pytest.raises(OutputProblem, match="format 1"):
        remake_tables(run.parent, console=Console())
    with pytest.raises(OutputProblem, match="format 1"):
        pack_run(run.parent, tmp_path / "pack.zip")
    other = run.parent.with_name("0" * 24)
    shutil.copytree(run.parent, other)
    (other / "run.json").write_text(json.dumps(content), encoding="utf-8")
    remake_tables(tmp_path / "outputs", console=Console())
    assert "Left out" in "".join(capsys.readouterr()), "a folder of another format does not stop the others"
