"""``medtest realism``: output, tables, page, and mistakes."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from medtest.cli.app import run_app
from medtest.core.errors import UserMistakes

sys.path.insert(0, str(Path(__file__).parents[1] / "realism"))
from realism_parts import write_real

SMALL = ["suite=polyp_seg", "relations=[feces]", "limit=2", "prepare.size=96", "cases=2", "patches=2", "seam=2"]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))


@pytest.mark.slow
def test_it_prints_figures_and_writes_tables_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_real(tmp_path / "real" / "feces", 2)
    assert run_app(["realism", *SMALL, f"real={tmp_path}/real"]) == 0
    output = capsys.readouterr().out
    for words in ("feces", "0.5 to 2", "at most 0.10", "at most 0.65", "realism.html"):
        assert words in output
    folder = tmp_path / "outputs" / "realism" / "polyp_seg"
    page = (folder / "realism.html").read_text(encoding="utf-8")
    assert "cases=2" in page
    assert str(tmp_path) not in page
    assert len(pd.read_csv(folder / "statistics.csv")) > 10


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ([], ("real", "real=FOLDER")),
        (["real=nowhere"], ("real", "nowhere")),
        (["real=.", "case=3"], ("case", "cases")),
        (["real=.", "words"], ("words", "KEY=VALUE")),
    ],
)
def test_mistakes_are_messages(tokens: list[str], words: tuple[str, ...]):
    with pytest.raises(UserMistakes) as caught:
        run_app(["realism", *SMALL, *tokens])
    text = "\n".join(map(str, caught.value.mistakes))
    assert all(word in text for word in words), text
