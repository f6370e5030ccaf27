"""Bundled suites with questions, run as typed on two pictures and compared with the drawn scenes."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from medtest.cli.app import run_app
from medtest.cli.run.launch import main
from medtest.core.files.paths import suites_folder
from medtest.language.questions.questions import by_name, official
from medtest.phantoms.questions import make
from medtest.suite.compose import load
from medtest.suite.reading.library import suite_names

SEED = 20250
QUIET = [
    f"systems.simlab.defects.{name}=0"
    for name in ("saturation_flips", "blur_not_relevant", "blood_instruments", "nondeterminism", "refusals")
]
"""The simulated product without its defects."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


def records(work: Path, suite: str) -> pd.DataFrame:
    (file,) = (work / "outputs" / suite).rglob("records.parquet")
    return pd.read_parquet(file)


def test_no_suite_of_questions_is_forgotten() -> None:
    typed = {"medvqa_clef": ["model=openai_compatible"]}
    kinds = {name: load(name, typed.get(name, [])).suite.kind for name in suite_names([suites_folder()])}
    assert {name for name, kind in kinds.items() if kind == "answer"} == {"medvqa", "medvqa_clef", "medvqa_controls"}


def test_phantoms_are_judged_by_the_drawn_scenes(work: Path) -> None:
    assert main(["suite=medvqa", "limit=2", "relations=[unchanged,instrument,text]", "track=false", *QUIET]) == 0
    rows = records(work, "medvqa")
    assert len(rows) == 2 * 18 * (1 + 3 + 2)
    assert set(rows.item) == {question_.name for question_ in official()}
    for index in range(2):
        scene = make(index, SEED)
        own = rows[rows.seed_id == f"scene-{index:05d}"]
        for name, group in own.groupby("item"):
            question = by_name(str(name))
            truth = question.parse_truth(scene.answers[str(name)])
            expected = "not relevant" if truth.value is None else str(truth.value)
            assert set(group.truth) == {expected}, (index, name)
    # Without defects the system gives the same answers to the same picture.
    again = rows[rows.relation == "unchanged"]
    assert len(again) == 2 * 18 * 3
    assert set(again.verdict) == {"PASS"}
    # An inserted object changes the right answer: one instrument more, and text where there was none.
    counts = rows[(rows.relation == "instrument") & (rows.item == "instrument_count")]
    assert set(counts.rule) == {"must become +inserted"}


def test_own_images_in_the_layout_of_the_contest(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["data", "questions", "suite=medvqa", "limit=2", "seeds.phantoms.size=256", "to=data"]) == 0
    content = json.loads((work / "data" / "gt.json").read_text())
    content[1]["Labels"] = content[1]["Labels"][:5]  # the second image has only five questions
    (work / "data" / "gt.json").write_text(json.dumps(content))
    typed = ["suite=medvqa_clef", "data=data", "model=simlab", "relations=[unchanged,saturation]"]
    assert main([*typed, "track=false", *QUIET]) == 0
    rows = records(work, "medvqa_clef")
    assert len(rows) == (18 + 5) * (1 + 3 + 1)
    assert rows[rows.seed_id == "scene-00001"].item.nunique() == 5
    (run,) = {file.parent for file in (work / "outputs").rglob("records.parquet")}
    assert run_app(["data", "submission", str(run)]) == 0
    assert "23 answers of 2 images" in capsys.readouterr().out
    submitted = json.loads((work / "submission.json").read_text())
    assert [entry["QuestionID"] for entry in submitted["scene-00000"]] == list(range(18))
