"""``medtest data questions`` and ``submission``: the contest's files, written and read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from medtest.api.faulty.server import serving
from medtest.cli.app import run_app
from medtest.cli.run.launch import main
from medtest.core.errors import UserMistakes
from medtest.language.questions.questions import by_name, official
from medtest.seeds.questions.folder import QuestionFolder, QuestionFolderSettings
from medtest.suite.compose import load_suite

SMALL = ["seeds.phantoms.size=128"]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)
    return tmp_path


def test_written_files_are_read_as_the_same_seeds(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed = ["suite=medvqa", "model=openai_compatible", *SMALL]
    assert run_app(["data", "questions", *typed, "limit=3", "to=out"]) == 0
    assert "3 images and 54 questions in gt.json" in capsys.readouterr().out
    (source,) = load_suite("medvqa", ["model=openai_compatible", *SMALL]).build_seeds(None)
    read = QuestionFolder(dataset="d", settings=QuestionFolderSettings(), root=work / "out", suite_seed=1)
    assert [ref.seed_id for ref in read.refs()] == [ref.seed_id for ref in source.refs()[:3]]
    for written_ref, read_ref in zip(source.refs(), read.refs(), strict=False):
        before, after = source.load(written_ref), read.load(read_ref)
        assert (before.image == after.image).all()
        assert before.asks == after.asks
    # The official layout: images by id, a list of answers for each question.
    entries = json.loads((work / "out" / "gt.json").read_text())
    assert set(entries[0]) == {"ImageID", "Labels"}
    assert {label["Question"] for label in entries[0]["Labels"]} == {question.text for question in official()}
    assert all(isinstance(label["Answer"], list) for label in entries[0]["Labels"])


def test_of_the_users_own_images_without_naming_a_model(work: Path) -> None:
    assert run_app(["data", "questions", "suite=medvqa", "model=openai_compatible", *SMALL, "limit=2", "to=a"]) == 0
    assert run_app(["data", "questions", "suite=medvqa_clef", "data=a", "to=b"]) == 0
    assert (work / "b" / "gt.json").read_text() == (work / "a" / "gt.json").read_text()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["suite=medvqa", "model=openai_compatible"], "to=DIR"),
        (["suite=polyp_seg", "to=x"], "a suite that asks questions"),
        (["suite=medvqa", "model=openai_compatible", "privacy.images=none", "to=x"], "images: none"),
    ],
)
def test_mistakes_are_one_message(typed: list[str], message: str) -> None:
    with pytest.raises(UserMistakes, match=message) as caught:
        run_app(["data", "questions", *typed])
    assert len(caught.value.mistakes) == 1


def test_a_runs_answers_become_a_submission(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answer=lambda body: "Yes, one polyp") as server:
        typed = ["suite=medvqa", "model=openai_compatible", f"base_url={server.base_url}", *SMALL]
        typed += ["systems.openai_compatible.model=m", "limit=2", "relations=[saturation]", "track=false"]
        assert main([*typed, "seeds.phantoms.questions=[polyps,box]"]) == 0
    (run,) = {path.parent for path in (work / "outputs").rglob("records.parquet")}
    capsys.readouterr()
    assert run_app(["data", "submission", str(run)]) == 0
    text = capsys.readouterr().out
    assert "4 answers of 2 images" in text
    assert "32 are missing" in text
    content = json.loads((work / "submission.json").read_text())
    assert set(content) == {"scene-00000", "scene-00001"}
    expected = [
        {"QuestionID": number, "Question": by_name(name).text, "Answer": "Yes, one polyp"}
        for number, name in ((3, "box"), (8, "polyps"))
    ]
    assert content["scene-00000"] == expected
    with pytest.raises(UserMistakes, match="a run folder"):
        run_app(["data", "submission", str(work)])


def test_followups_of_questions_are_written_without_a_word_on_maps(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = ["suite=medvqa", *SMALL, "prepare.size=128", "limit=1", "relations=[blur]", "to=followups"]
    assert run_app(["export", *typed]) == 0
    text = capsys.readouterr().out
    assert "follow-ups and manifest.csv" in text
    assert "maps" not in text
    assert len(list((work / "followups").rglob("*.png"))) == 5  # the source, the same again three times, blurred


def test_published_sets_are_listed_with_their_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["data", "known"]) == 0
    assert "VQA-RAD: 315 images, 2,248 pairs of question and answer" in capsys.readouterr().out
