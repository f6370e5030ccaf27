"""The 18 questions and the files they come in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from medtest.core.errors import UserMistakes
from medtest.language.questions.question_files import QuestionRow, read, to_development, to_submission
from medtest.language.questions.questions import asks_for_mask, find, in_slide_order, kept, official, question_of
from medtest.language.questions.values import Kind


def test_ids_are_the_contests_and_the_order_the_slides() -> None:
    assert [question.id for question in official()] == list(range(18))
    # Official ids in the order of the MedTest slides, read off both lists by hand.
    order = [12, 13, 14, 1, 7, 9, 8, 3, 4, 2, 5, 6, 16, 17, 0, 10, 15, 11]
    assert [question.id for question in in_slide_order()] == order
    assert [question.slide for question in in_slide_order()] == list(range(1, 19))
    assert {question.id for question in official()} - {question.id for question in kept()} == {13, 2, 6, 15}
    assert len({question.name for question in official()}) == 18


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("How many instrumnets are in the image?", 9),
        ("how many instruments are in the image", 9),
        ("Is there a green/black box artifact?", 3),
        ("  Is there a green/black box ARTEFACT ?", 3),
        ("What color is the abnormality? If more than one separate with ;", 5),
        ("Are there any instruments in the image? Check all that are present.", 14),
    ],
)
def test_wordings_that_occur_are_known(text: str, item: int) -> None:
    question = find(text)
    assert question is not None
    assert question.id == item


def test_other_questions_get_a_kind_from_their_answers() -> None:
    assert question_of("Is the heart enlarged?", ("No",)).kind == Kind.YES_NO
    assert question_of("Which organ is shown?", ("Liver",)).kind == Kind.TEXT
    assert question_of("Does this image contain any finding?").kind == Kind.YES_NO
    assert question_of("Which organ is shown?").name == question_of("which organ is shown").name
    assert asks_for_mask("Where exactly in the image is the polyp located?")


DEVELOPMENT = [
    {
        "ImageID": "cla820gl",
        "Labels": [
            {"Question": "What color is the abnormality?", "AnswerType": "multi", "Answer": ["Red", "Pink"]},
            {"Question": "How many instrumnets are in the image?", "AnswerType": "single", "Answer": ["0"]},
            {
                "Question": "Where exactly in the image is the polyp located?",
                "AnswerType": "segmentation",
                "Answer": "cla820gl_mask.png",
            },
        ],
    }
]
SUBMISSION = {"cla820gl": [{"QuestionID": 9, "Question": "How many instrumnets are in the image?", "Answer": "0"}]}
RAD = [
    {"image_name": "synpic1.jpg", "question": "Is there a mass?", "answer": "Yes", "answer_type": "CLOSED", "qid": 7}
]


def _write_file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_development_file_is_read_and_written(tmp_path: Path) -> None:
    rows = read(_write_file(tmp_path, "gt.json", json.dumps(DEVELOPMENT)))
    assert [(row.image, row.question.id, row.answers) for row in rows] == [
        ("cla820gl", 5, ("Red", "Pink")),
        ("cla820gl", 9, ("0",)),
    ]
    again = read(_write_file(tmp_path, "again.json", to_development(rows)))
    assert again == rows


def test_the_submission_is_read_and_written_in_the_contests_format(tmp_path: Path) -> None:
    rows = [QuestionRow(image="a", question=question, answers=("No",)) for question in reversed(official())]
    content = json.loads(to_submission(rows))
    assert [entry["QuestionID"] for entry in content["a"]] == list(range(18))
    assert all(set(entry) == {"QuestionID", "Question", "Answer"} for entry in content["a"])
    assert {row.question.id for row in read(_write_file(tmp_path, "s.json", json.dumps(content)))} == set(range(18))
    assert read(_write_file(tmp_path, "t.json", json.dumps(SUBMISSION)))[0].answers == ("0",)


def test_kvasir_vqa_rows_of_one_question_are_put_together(tmp_path: Path) -> None:
    rows = (
        "source,question,answer,img_id\nk,Are there any abnormalities in the image? Check all that are present.,{},x1\n"
    )
    text = rows.format("polyp") + rows.format("oesophagitis").split("\n", 1)[1]
    (row,) = read(_write_file(tmp_path, "metadata.csv", text))
    assert (row.image, row.question.id, row.answers) == ("x1", 12, ("polyp", "oesophagitis"))
    lines = '{"img_id": "x1", "question": "Is there text?", "answer": "yes"}\n' * 2
    (row,) = read(_write_file(tmp_path, "k.jsonl", lines))
    assert (row.question.id, row.answers) == (4, ("yes",))


def test_vqa_rad_and_tables_without_answers(tmp_path: Path) -> None:
    (row,) = read(_write_file(tmp_path, "rad.json", json.dumps(RAD)))
    assert (row.image, row.question.kind, row.answers) == ("synpic1.jpg", Kind.YES_NO, ("Yes",))
    (row,) = read(_write_file(tmp_path, "q.csv", "Image;Question\na/b.png;Is there text?\n"))
    assert (row.image, row.question.id, row.answers) == ("a/b.png", 4, ())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "image,frage\nx,y\n", "columns.question"),
        ("a.csv", "image,question\n../x.png,Is there text?\n", "below the image folder"),
        ("a.csv", "image,question\n/x.png,Is there text?\n", "line 2: image"),
        ("a.csv", "image,question\nC:\\x.png,Is there text?\n", "line 2: image"),
        ("a.csv", "image,question,answer\nx.png,Is there text?\n", "2 values"),
        ("a.csv", "image,question\n", "has no question"),
        ("a.json", "[", "is not JSON"),
        ("a.json", "[]", "is an empty list"),
        ("a.json", "[1]", "entry 1 is 1"),
        ("a.json", '{"a": 1}', "holds 1"),
        ("a.json", '[{"ImageID": "x", "Labels": 3}]', "Labels is 3"),
        ("a.json", '[{"img_id": "x", "answer": "no"}]', "question"),
        ("a.json", '[{"img_id": "x", "question": "Is there text?", "answer": {"a": 1}}]', "a text, a number or a list"),
        ("a.json", "[" * 100_000, "a.json"),
        ("a.json", "", "empty"),
    ],
)
def test_a_wrong_file_is_one_message(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UserMistakes) as caught:
        read(_write_file(tmp_path, name, text))
    assert message in str(caught.value)


def test_many_mistakes_are_counted_and_few_shown(tmp_path: Path) -> None:
    text = "image,question\n" + "../x.png,Is there text?\n" * 50
    with pytest.raises(UserMistakes, match="50 mistakes in a.csv, the first 10 shown"):
        read(_write_file(tmp_path, "a.csv", text))
