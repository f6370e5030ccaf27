"""One text that answers several questions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.language.questions.answers.values.together import split
from medtest.language.questions.questions import in_slide_order, official

ANSWERS = {question.name: f"answer {question.id}" for question in official()}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ANSWERS),
        "```json\n" + json.dumps({str(question.id): ANSWERS[question.name] for question in official()}) + "\n```",
        json.dumps({"answers": {f"Q{question.id}": {"answer": ANSWERS[question.name]} for question in official()}}),
        json.dumps(
            [{"QuestionID": question.id, "Question": "?", "Answer": ANSWERS[question.name]} for question in official()]
        ),
        "\n".join(f"{question.id}. {ANSWERS[question.name]}" for question in official()),
        "\n".join(f"- **{question.text}**: {ANSWERS[question.name]}" for question in official()),
        "Here you are:\n\n" + "\n".join(f"{question.name}: {ANSWERS[question.name]}" for question in official()),
    ],
)
def test_every_question_gets_its_own_answer(text: str) -> None:
    assert split(text, official()) == ANSWERS


def test_a_numbered_list_follows_the_order_of_the_questions() -> None:
    questions = in_slide_order()
    text = "\n".join(f"{place}) {ANSWERS[question.name]}" for place, question in enumerate(questions, start=1))
    assert split(text, questions, numbered_from=1) == ANSWERS


def test_missing_answers_are_left_out() -> None:
    assert split('{"polyps": null, "text": "No", "foo": 1}', official()) == {"text": "No"}
    assert split('{"polyps": [], "text": true}', official()) == {"polyps": "none", "text": "yes"}
    assert split("I'm sorry, I can't help with that.", official()) == {}
    assert split("", official()) == {}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", ["\n", " ", "a", "1. ", "a\n", "{", "[", "** ", "a ", ": "])
def test_long_texts_cost_no_time(part: str) -> None:
    split(part * (100_000 // len(part)), official())


@given(st.text(max_size=300))
def test_any_text_is_cut_without_an_error(text: str) -> None:
    assert set(split(text, official())) <= set(ANSWERS)
