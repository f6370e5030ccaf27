"""``medtest objects``: commands and their output."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from medtest.cli.followups.objects import app
from medtest.core.errors import UserMistakes
from medtest.relations.objects.library import load_library

sys.path.insert(0, str(Path(__file__).parents[1] / "relations"))
from object_layout_files import SIDE, blob, kvasir_instrument, paint, save, scene


def test_build_lists_written_and_skipped_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kvasir_instrument(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    words = ["build", "--layout", "kvasir-instrument", "data", "--out", "objects/mine", "--license", "own"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "2 instrument written to mine (1 partial views, left out by default)" in result.output
    assert "skipped images/c3.jpg: no mask" in result.output
    assert "library=mine" in result.output
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    assert len(load_library("mine").kind("instrument")) == 2


def test_a_missing_kind_is_a_mistake(tmp_path: Path) -> None:
    save(tmp_path / "data" / "images" / "x.png", paint(scene(), blob(150, 120, 20), (160, 120, 40)))
    save(tmp_path / "data" / "masks" / "x.png", blob(150, 120, 20))
    words = ["build", "--layout", "masks", str(tmp_path / "data"), "--out", str(tmp_path / "lib"), "--license", "own"]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UserMistakes)
    assert "--kind" in str(result.exception)
    result = CliRunner().invoke(app, [*words, "--kind", "feces"])
    assert result.exit_code == 0
    assert "1 feces" in result.output
    assert "Use it: relations.feces.library_folder=PATH" in result.output and "instrument" not in result.output


def test_a_licence_must_be_given(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["build", "--layout", "masks", str(tmp_path), "--out", str(tmp_path / "lib")])
    assert result.exit_code == 2
    assert "--license" in result.output


def test_list_shows_source_and_licence() -> None:
    result = CliRunner().invoke(app, ["list"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert "snare_open" in result.output
    assert "CC0-1.0" in result.output


def test_markup_in_a_file_name_is_text(tmp_path: Path) -> None:
    root = kvasir_instrument(tmp_path / "data")
    save(root / "images" / "[red]x.png", np.zeros((*SIDE, 3), np.uint8))
    words = ["build", "--layout", "kvasir-instrument", str(root), "--out", str(tmp_path / "lib"), "--license", "own"]
    assert "[red]x.png: no mask" in CliRunner().invoke(app, words).output
