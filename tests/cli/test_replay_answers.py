"""``medtest replay`` of a question: every system's recorded answer, or those of a named model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from medtest.cli.app import run_app
from medtest.cli.run.launch import main

ADDRESS = "phantoms/scene-00000/text_s3_f0_r0/polyps"


@pytest.mark.slow
def test_a_replay_shows_the_answers_of_the_model_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    chosen = ["relations=[text]", "only=question:polyps", "limit=1", "tracking=none", "quiet=true"]
    assert main(["suite=medvqa", *chosen]) == 0
    outputs = tmp_path / "outputs" / "medvqa"
    shutil.copytree(outputs / "simlab-simulated", outputs / "earlier")  # another system's, for all that folders say

    def shown(*typed: str) -> str:
        capsys.readouterr()
        assert run_app(["replay", "suite=medvqa", *typed, ADDRESS, "--out", str(tmp_path / "replay")]) == 0
        return capsys.readouterr().out

    every = shown()
    assert "polyps, earlier (" in every
    assert "polyps, simlab-simulated (" in every
    named = shown("model=simlab")
    assert "polyps, simlab-simulated (" in named
    assert "earlier" not in named

    shutil.rmtree(outputs / "simlab-simulated")
    none = shown("model=simlab")
    assert "no recorded answer by simlab-simulated" in none
    assert "answers by earlier" in none
