"""Images with questions: the contest's layout, Kvasir-VQA, VQA-RAD, tables, images alone; one report of mistakes."""

from __future__ import annotations

import json
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_files import junk, mask, mistakes_of, number_of, picture
from pydantic import ValidationError
from question_layouts import (
    CLEF_IDS,
    COLOUR,
    COUNT,
    TEXT,
    clef,
    images_alone,
    kvasir_vqa,
    plain_csv,
    table,
    vqa_rad,
    write,
)

from medtest.core.errors import UserMistakes
from medtest.core.plugins import part
from medtest.language.questions.question_files import QuestionRow, to_development
from medtest.language.questions.questions import in_slide_order, kept, official, question_of
from medtest.preparation import prepare
from medtest.seeds.questions.folder import QuestionFolder, QuestionFolderSettings


def source(root: Path | None, **chosen: Any) -> QuestionFolder:
    return QuestionFolder(dataset="mine", settings=QuestionFolderSettings(**chosen), root=root, suite_seed=1)


def truths_of(seeds: QuestionFolder) -> dict[str, dict[str, tuple[str, ...] | None]]:
    return {ref.seed_id: {ask.item: ask.truth for ask in seeds.load(ref).asks} for ref in seeds.refs()}


# -------------------------------------------------------------------------------------------------------- layouts


def test_the_contests_layout(tmp_path: Path) -> None:
    clef(tmp_path)
    seeds = source(tmp_path)
    assert truths_of(seeds) == {
        # the question for a mask is not an item; the 18 keep the order of the slides, 6 before 11
        CLEF_IDS[0]: {"instrument_count": ("0",), "abnormality_colour": ("Not relevant",)},
        CLEF_IDS[1]: {"instrument_count": ("1",), "abnormality_colour": ("Red", "Pink")},
        CLEF_IDS[2]: {"instrument_count": ("2",), "abnormality_colour": ("Red", "Pink")},
    }
    ref = seeds.refs()[2]
    seed = seeds.load(ref)
    assert ref.items == ("instrument_count", "abnormality_colour") == tuple(ask.item for ask in seed.asks)
    assert (seed.kind, seed.together, seed.expected, seed.image.dtype) == ("answer", False, None, np.uint8)
    assert number_of(seed) == 2
    assert [(ask.id, ask.kind) for ask in seed.asks] == [(9, "count"), (5, "colour")]
    assert seed.asks[0].text == "How many instruments are in the image?"
    assert prepare(seed, size=16).asks == seed.asks
    assert seeds.problems() == () == seeds.notices()
    assert (seeds.task, seeds.needs_root) == ("answer", True)


def test_kvasir_vqa_has_a_row_an_answer(tmp_path: Path) -> None:
    kvasir_vqa(tmp_path)
    assert truths_of(source(tmp_path)) == {
        "clb0kv1": {"text": ("no",), "abnormality_colour": ("pink", "red")},
        "clb0kv2": {"text": ("yes",), "abnormality_colour": ("pink", "red")},
    }


def test_vqa_rad_has_its_own_questions(tmp_path: Path) -> None:
    vqa_rad(tmp_path)
    heart, organ = question_of("Is the heart enlarged?", ("yes",)), question_of("Which organ is shown?")
    seeds = source(tmp_path)
    assert truths_of(seeds)["VQA_RAD_Image_Folder_synpic1"] == {heart.name: ("Yes",), organ.name: ("Liver",)}
    asks = {ask.item: ask for ref in seeds.refs() for ask in seeds.load(ref).asks}
    assert (asks[heart.name].kind, asks[heart.name].id) == ("yes_no", None)
    assert (asks[organ.name].kind, asks[organ.name].text) == ("text", "Which organ is shown?")
    only = source(tmp_path, questions=[organ.name])
    assert list(truths_of(only)) == ["VQA_RAD_Image_Folder_synpic1"]
    assert "2 images have none of the selected questions" in only.notices()[0]


def test_an_own_table(tmp_path: Path) -> None:
    plain_csv(tmp_path)
    seeds = source(tmp_path)
    assert truths_of(seeds) == {
        "a_one": {"text": ("yes",)},
        "b_one": {"text": None},
        "two": {"abnormality_colour": ("red",)},
    }
    assert [number_of(seeds.load(ref)) for ref in seeds.refs()] == [0, 1, 2]
    assert seeds.notices() == ("1 of 3 questions have no answer and do not count for accuracy.",)


def test_images_alone_are_asked_the_18_questions(tmp_path: Path) -> None:
    images_alone(tmp_path)
    junk(tmp_path)
    seeds = source(tmp_path)
    names = tuple(question.name for question in in_slide_order())
    assert [ref.items for ref in seeds.refs()] == [names] * 3
    assert all(ask.truth is None for ask in seeds.load(seeds.refs()[0]).asks)
    assert seeds.notices() == ("No file of questions: 3 images are asked the questions without a known answer.",)
    assert seeds.ignored() > 0
    fourteen = source(tmp_path, questions="kept", ask="together")
    assert set(fourteen.refs()[0].items) == {question.name for question in kept()}
    assert fourteen.load(fourteen.refs()[0]).together


# ------------------------------------------------------------------------------------------------------- settings


def test_questions_are_chosen_by_name_in_the_order_of_the_slides(tmp_path: Path) -> None:
    clef(tmp_path)
    assert source(tmp_path, questions=["abnormality_colour", "instrument_count"]).refs()[0].items == (
        "instrument_count", "abnormality_colour",
    )  # fmt: skip
    (mistake,) = mistakes_of(source(tmp_path, questions=["text"]))
    assert (mistake.key, mistake.where) == ("seeds.mine.questions", "suite")
    assert "text, which is not asked about any image" in mistake.found


@pytest.mark.parametrize("wrong", ["al", [], ["polips"], ["text", "text"], ["q_12"], 3])
def test_wrong_choices_are_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        QuestionFolderSettings(questions=wrong)


@pytest.mark.parametrize("key", ["file", "images", "masks", "metadata"])
@pytest.mark.parametrize("path", ["/etc", "../x", "~x", "a/../../b"])
def test_no_path_leads_out(key: str, path: str) -> None:
    with pytest.raises(ValidationError):
        QuestionFolderSettings(**{key: path})


def test_the_defaults_of_the_yaml_match_the_class() -> None:
    info = part("seeds", "questions")
    assert info.load() is QuestionFolder
    assert info.load().Settings(**info.defaults) == QuestionFolderSettings()


def test_masks_mark_regions_that_must_stay_visible(tmp_path: Path) -> None:
    clef(tmp_path)
    for number, name in enumerate(CLEF_IDS):
        mask(tmp_path / "masks" / f"{name}_mask.png", number)
    seeds = source(tmp_path, masks="masks")
    masks = [seeds.load(ref).expected for ref in seeds.refs()]
    assert [int(mask_.sum()) for mask_ in masks if mask_ is not None] == [2, 3, 4]
    (mistake,) = mistakes_of(source(tmp_path, masks="mask"))
    assert mistake.key == "seeds.mine.masks"


def test_patients_and_strata(tmp_path: Path) -> None:
    clef(tmp_path)
    table(tmp_path / "patients.csv", [["image", "patient", "site"], *([name, "p1", "A"] for name in CLEF_IDS)])
    ref = source(tmp_path, metadata="patients.csv").refs()[0]
    assert (ref.cluster, ref.strata) == ("p1", (("site", "A"),))
    table(tmp_path / "patients.csv", [["image", "patient"], [CLEF_IDS[0], "p1"]])
    assert len(mistakes_of(source(tmp_path, metadata="patients.csv"))) == 2


# ------------------------------------------------------------------------------------------------------- mistakes


def test_no_folder_is_one_message(tmp_path: Path) -> None:
    (mistake,) = mistakes_of(source(None))
    assert mistake.fix == "add data=PATH"
    (mistake,) = mistakes_of(source(tmp_path))
    assert "no pictures" in mistake.found


def test_missing_images_and_ambiguous_names_are_one_report(tmp_path: Path) -> None:
    plain_csv(tmp_path)
    rows = [["image", "question"], ["gone", TEXT], ["gone", COLOUR], ["one.png", TEXT], ["two", TEXT]]
    table(tmp_path / "questions.csv", rows)
    messages = {mistake.found for mistake in mistakes_of(source(tmp_path))}
    assert messages == {
        "2 questions of gone, which has no image",
        "1 question of one.png, which is the name of 2 files (a/one.png, b/one.png)",
    }
    lenient = source(tmp_path, on_bad_seed="skip")
    assert list(truths_of(lenient)) == ["two"]
    assert len(lenient.problems()) == 2
    assert "2 of 3 images have no question" in lenient.notices()[0]


def test_several_files_of_questions_are_one_message(tmp_path: Path) -> None:
    clef(tmp_path)
    table(tmp_path / "more" / "test.csv", [["image", "question"], [CLEF_IDS[0], TEXT]])
    table(tmp_path / "patients.csv", [["image", "patient"]])  # names no question
    (mistake,) = mistakes_of(source(tmp_path))
    assert mistake.key == "seeds.mine.file"
    assert "gt.json" in mistake.found
    assert "more/test.csv" in mistake.found
    assert truths_of(source(tmp_path, file="more/test.csv")) == {CLEF_IDS[0]: {"text": None}}
    (mistake,) = mistakes_of(source(tmp_path, file="gone.json"))
    assert "does not exist" in mistake.found


def test_a_wrong_file_is_one_message(tmp_path: Path) -> None:
    clef(tmp_path)
    write(tmp_path / "gt.json", json.dumps([{"ImageID": "../x", "Labels": [{"Question": TEXT, "Answer": ["no"]}]}]))
    (mistake,) = mistakes_of(source(tmp_path))
    assert mistake.where == "gt.json"
    assert "not absolute" in mistake.allowed


def test_damaged_images_are_reported_or_left_out(tmp_path: Path) -> None:
    clef(tmp_path)
    (tmp_path / "images" / f"{CLEF_IDS[1]}.png").write_bytes(b"no image")
    (mistake,) = mistakes_of(source(tmp_path))
    assert CLEF_IDS[1] in mistake.where
    assert [ref.seed_id for ref in source(tmp_path, on_bad_seed="skip").refs()] == [CLEF_IDS[0], CLEF_IDS[2]]
    assert len(mistakes_of(source(tmp_path, max_pixels=10))) == 3


def test_links_are_followed_and_broken_ones_are_not_files_of_questions(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    clef(outside)
    root = tmp_path / "data"
    root.mkdir()
    (root / "images").symlink_to(outside / "images")
    (outside / "gt.json").rename(outside / "5d41402a")
    (root / "gt.json").symlink_to(outside / "5d41402a")
    for seeds in (source(root), source(root, file="gt.json")):
        assert [ref.seed_id for ref in seeds.refs()] == list(CLEF_IDS)
    (outside / "5d41402a").unlink()
    assert source(root).refs()[0].items == tuple(question.name for question in in_slide_order())
    (mistake,) = mistakes_of(source(root, file="gt.json"))
    assert "is a broken link" in mistake.found and "5d41402a" not in mistake.found


def test_a_file_that_disappears_during_a_run(tmp_path: Path) -> None:
    clef(tmp_path)
    seeds = source(tmp_path)
    ref = seeds.refs()[0]
    (tmp_path / "images" / f"{CLEF_IDS[0]}.png").unlink()
    with pytest.raises(UserMistakes, match="no longer exists"):
        seeds.load(ref)


# --------------------------------------------------------------------------------------------------------- digest


def test_the_digest_covers_pixels_questions_and_answers(tmp_path: Path) -> None:
    clef(tmp_path / "a")
    clef(tmp_path / "b")
    first = source(tmp_path / "a").digest()
    assert source(tmp_path / "b").digest() == first
    others = {source(tmp_path / "a", ask="together").digest(), source(tmp_path / "a", questions="kept").digest()}
    assert first in others, "both questions are among the kept ones"
    picture(tmp_path / "b" / "images" / f"{CLEF_IDS[0]}.png", 77)
    others.add(source(tmp_path / "b").digest())
    clef(tmp_path / "c")
    text = (tmp_path / "c" / "gt.json").read_text().replace('"Pink"', '"Brown"')
    write(tmp_path / "c" / "gt.json", text)
    others.add(source(tmp_path / "c").digest())
    write(tmp_path / "c" / "gt.json", text.replace(COUNT, TEXT))
    others.add(source(tmp_path / "c").digest())
    assert len(others) == 5


# ---------------------------------------------------------------------------------------------------- any of them

NAMES = st.text(st.sampled_from("aZ9é中 ._-(ß"), min_size=1, max_size=12).filter(lambda name: name.strip(" .") == name)
WORDS = st.lists(st.sampled_from(["Red", "Not relevant", "5-10mm", "Zero", "ünï"]), max_size=3, unique=True)


@settings(max_examples=25)
@given(
    images=st.dictionaries(
        NAMES, st.dictionaries(st.sampled_from(official()), WORDS, min_size=1, max_size=4), min_size=1, max_size=4
    )
)
def test_written_questions_are_read_back(images: dict[str, Any]) -> None:
    """Names in any script and any answers: each image keeps its own questions and answers, and ids are distinct."""
    folded = [unicodedata.normalize("NFC", name).casefold() for name in images]
    if len(set(folded)) < len(folded):
        return  # names that differ in case alone are one name
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number, name in enumerate(images):
            picture(root / "images" / f"{name}.png", number)
        rows = [
            QuestionRow(image=name, question=question, answers=tuple(answers))
            for name, asked_of in images.items()
            for question, answers in asked_of.items()
        ]
        write(root / "gt.json", to_development(rows))
        seeds = source(root)
        refs = seeds.refs()
        assert len({ref.seed_id for ref in refs}) == len(refs) == len(images)
        asks = {number_of(seed): seed.asks for seed in map(seeds.load, refs)}
        for number, asked_of in enumerate(images.values()):
            truths = {ask.item: ask.truth for ask in asks[number]}
            assert truths == {question_.name: tuple(answers) or None for question_, answers in asked_of.items()}
