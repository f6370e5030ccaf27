"""``medtest data inspect`` on images with questions: layouts are recognised by names, and printed lines load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from layout_files import picture
from question_layouts import clef, kvasir_vqa, plain_csv, table, vqa_rad, write

from medtest.cli.app import run_app
from medtest.core.errors import UserMistakes
from medtest.seeds.datasets.base import recognise
from medtest.seeds.datasets.inspect import inspect_path
from medtest.seeds.datasets.tree import tree_of_archive
from medtest.suite.compose import load_suite

MAKERS = {
    "medvqa-gi-2023": (clef, "ImageCLEFmed-MEDVQA-GI-2023-Development-Dataset", 3),
    "kvasir-vqa": (kvasir_vqa, "Kvasir-VQA", 2),
    "vqa-rad": (vqa_rad, "data", 3),
    "": (plain_csv, "mine", 3),
}


def question_folders(root: Path):
    return [looked for looked in inspect_path(root).looked if looked.found.holds == "questions"]


@pytest.mark.parametrize("name", MAKERS)
def test_every_layout_is_recognised_and_its_line_loads(tmp_path: Path, name: str) -> None:
    make, folder, count = MAKERS[name]
    root = tmp_path / "my data"
    make(root / folder)
    (looked,) = question_folders(root)
    assert (looked.found.dataset, looked.found.count, looked.problems) == (name, count, ())
    suite, data, *settings = looked.line.tokens(str(root))
    assert suite == "suite=medvqa_clef"
    (source,) = load_suite("medvqa_clef", settings).build_seeds(Path(data.removeprefix("data=")))
    refs = source.refs()
    assert len(refs) == count
    assert source.load(refs[0]).asks


def test_counts_beside_the_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kvasir_vqa(tmp_path / "kvasir-vqa")
    code = run_app(["data", "inspect", str(tmp_path)])
    text = capsys.readouterr().out
    assert code == 0
    assert "2 of 6,500 published (image files with questions; metadata.csv and images/)" in text
    # two images, each with "is there text?" and two colours: four questions, six pairs
    assert "4 questions (2 of the 18 of MEDVQA-GI); 4 answered; 6 pairs of question and answer of 58,849" in text
    assert "suite=medvqa_clef" in text
    assert "model=openai_compatible" in text


def test_files_that_a_run_would_refuse_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clef(tmp_path / "a")
    (tmp_path / "a" / "images" / "cl8k2u1pm0001.png").unlink()
    assert run_app(["data", "inspect", str(tmp_path)]) == 2
    text = capsys.readouterr().out
    assert "a/gt.json: 2 questions of cl8k2u1pm0001, which has no image" in text


def test_the_contests_layout_is_not_mistaken_for_the_contests_set(tmp_path: Path) -> None:
    clef(tmp_path / "mine")
    (looked,) = question_folders(tmp_path)
    assert (looked.found.dataset, looked.found.count) == ("", 3)
    assert not any("published" in note for note in looked.notes)


def test_two_files_are_distinguished_by_their_settings(tmp_path: Path) -> None:
    clef(tmp_path)
    table(tmp_path / "more questions.csv", [["image", "question"], ["cl8k2u1pm0001", "Is there text?"]])
    settings = {tuple(looked.line.settings[1:]) for looked in question_folders(tmp_path)}
    assert settings == {("seeds.folder.file=gt.json",), ("seeds.folder.file=more questions.csv",)}


def test_a_file_with_a_name_of_questions_and_other_content(tmp_path: Path) -> None:
    picture(tmp_path / "a.png", 1)
    write(tmp_path / "questionnaire.json", '{"about": "something else"}')
    report = inspect_path(tmp_path)
    assert report.usable
    (looked,) = question_folders(tmp_path)
    assert "not taken for questions" in looked.notes[0]
    assert looked.line is None


def test_metadata_of_patients_is_not_a_file_of_questions(tmp_path: Path) -> None:
    picture(tmp_path / "images" / "a.png", 1)
    table(tmp_path / "metadata.csv", [["image", "patient"], ["a", "p"]])
    assert question_folders(tmp_path) == []


@pytest.mark.parametrize("name", ["medvqa-gi-2023", "kvasir-vqa", "vqa-rad"])
def test_archives_are_recognised_by_their_names(tmp_path: Path, name: str) -> None:
    make, folder, count = MAKERS[name]
    make(tmp_path / "data" / folder)
    path = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "data")
    layouts = [layout for layout in recognise(tree_of_archive(Path(path))) if layout.holds == "questions"]
    assert [(layout.dataset, layout.count) for layout in layouts] == [(name, count)]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["", "images", "ward/pictures of today"])
def test_images_alone_may_be_used_with_the_18_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    root = tmp_path / "mine"
    for number in range(3):
        picture(root / folder / f"frame{number}.png", number)
    code = run_app(["data", "inspect", str(root)])
    text = capsys.readouterr().out
    assert code == 0
    assert "suite=polyp_seg_unlabelled" in text
    (other,) = [line for line in text.splitlines() if line.startswith("  or:")]
    assert "suite=medvqa_clef" in other
    assert "model=openai_compatible" in other
    assert "18 questions" in other
    (looked,) = inspect_path(root).looked
    ((_, line),) = looked.also
    suite, data, *settings = line.tokens(str(root))
    (source,) = load_suite(suite.removeprefix("suite="), settings).build_seeds(Path(data.removeprefix("data=")))
    refs = source.refs()
    assert [len(ref.items) for ref in refs] == [18, 18, 18]
    assert source.load(refs[0]).asks[0].truth is None


def test_images_with_masks_or_questions_are_not_offered_again(tmp_path: Path) -> None:
    clef(tmp_path)
    assert all(looked.also == () for looked in inspect_path(tmp_path).looked)


# --------------------------------------------------------------------------------------------------- by what they say


def test_a_file_is_recognised_by_its_content_like_in_a_run(tmp_path: Path) -> None:
    picture(tmp_path / "images" / "a.png")
    (tmp_path / "export_7.csv").write_text("image,question,answer\na,Is there text in the image?,no\n")
    (looked,) = inspect_path(tmp_path).looked
    assert (looked.found.holds, looked.found.count, looked.problems) == ("questions", 1, ())
    (source,) = load_suite("medvqa_clef", looked.line.settings).build_seeds(tmp_path)
    assert [ref.items for ref in source.refs()] == [("text",)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("questions.csv", b"bild;frage;antwort\na;Ist da ein Polyp?;ja\n", "columns.image"),
        ("questions.csv", "image,question\na,Is there text?\n".encode("utf-16-le"), "UTF-16 without a byte order mark"),
        ("list.csv", b"Our questions of 2026\n\nimage,question\na,x\n", "columns.image"),
        ("list.csv", b"image,prompt,answer\na,Is there text in the image?,no\n", "columns.question"),
        ("vqa.xlsx", b"PK\x03\x04 no text", "is a spreadsheet"),
    ],
)
def test_a_file_that_looks_like_questions_and_cannot_be_read_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    picture(tmp_path / "images" / "a.png")
    (tmp_path / name).write_bytes(content)
    (source,) = load_suite("medvqa_clef", ["model=openai_compatible"]).build_seeds(tmp_path)
    with pytest.raises(UserMistakes) as caught:
        source.refs()
    assert name in str(caught.value) and message in str(caught.value)
    assert run_app(["data", "inspect", str(tmp_path)]) == 2
    text = capsys.readouterr().out
    assert name in text and "medvqa_clef" not in text


def test_images_alone_are_still_asked_the_18(tmp_path: Path) -> None:
    picture(tmp_path / "images" / "a.png")
    (tmp_path / "patients.csv").write_text("file,patient\na,1\n")
    (source,) = load_suite("medvqa_clef", ["model=openai_compatible"]).build_seeds(tmp_path)
    assert len(source.refs()[0].items) == 18


def test_truths_of_free_text_unlike_the_others_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for number, (answer, count, where) in enumerate(
        [("yes", "2", "left"), ("No.", "1", "top"), ("off", "5 mm", "2"), ("yes", "0", "right"), ("no", "3", "x")]
    ):
        picture(tmp_path / "images" / f"{number}.png")
        rows += [(number, "Is the light on?", answer), (number, "Number of folds?", count), (number, "Where?", where)]
    (tmp_path / "mine.csv").write_text("image,question,answer\n" + "".join(f"{i},{q},{a}\n" for i, q, a in rows))
    run_app(["data", "inspect", str(tmp_path)])
    odd = "compared word by word: 'off' among yes and no (1), '5 mm' among counts (1)"
    assert odd in capsys.readouterr().out
    (source,) = load_suite("medvqa_clef", ["model=openai_compatible"]).build_seeds(tmp_path)
    assert odd in " ".join(source.notices())


def test_truths_of_no_use_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "abcd":
        picture(tmp_path / "images" / f"{name}.png")
    rows = [
        ("a", "Is the mucosa inflamed here?", "yes"),
        ("b", "Is the mucosa inflamed here?", "maybe"),
        ("c", "Is the mucosa inflamed here?", "no"),
        ("c", "Is the mucosa inflamed here?", "yes"),
        ("a", "How many polyps are in the image?", "5 mm"),
        ("b", "How many polyps are in the image?", "2"),
    ]
    (tmp_path / "mine.csv").write_text("image,question,answer\n" + "".join(",".join(row) + "\n" for row in rows))
    notice = (
        "3 true answers are unusable and count as unknown: '5 mm' for a count (1), 'maybe' for yes or no (1), "
        "both yes and no (1)"
    )
    run_app(["data", "inspect", str(tmp_path)])
    assert notice in capsys.readouterr().out
    (source,) = load_suite("medvqa_clef", ["model=openai_compatible"]).build_seeds(tmp_path)
    seeds = {ref.seed_id: source.load(ref) for ref in source.refs()}
    assert notice in " ".join(source.notices())
    truths = {ask.kind: ask.truth for ask in seeds["c"].asks}
    assert truths == {"yes_no": None}, "every answer would contradict one of the two"
