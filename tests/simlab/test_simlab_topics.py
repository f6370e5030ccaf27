"""Reading of questions by the product."""

from __future__ import annotations

import pytest

from medtest.core.cases import Ask
from medtest.language.questions.questions import official
from medtest.simlab.answering.topics import Topic, questions_in, topic_of
from medtest.systems.answering.prompts import PromptSettings, prompt_of

MEANT = {
    "findings": "finding_count",
    "polyps": "polyp_count",
    "instrument_count": "tool_count",
    "instrument_place": "tool_place",
    "instruments": "tools",
    "all_removed": "removed",
}
ASKS = tuple(
    Ask(item=question_.name, text=question_.text, kind=question_.kind.value, id=question_.id)
    for question_ in official()
)


@pytest.mark.parametrize("question", official(), ids=lambda question_: question_.name)
def test_all_wordings_of_the_contest_are_understood(question) -> None:
    for text in (question.text, *question.spellings):
        assert topic_of(text) == Topic(MEANT.get(question.name, question.name)), text


def test_the_questions_are_eighteen_topics() -> None:
    assert {topic_of(question_.text) for question_ in official()} == set(Topic) - {Topic.SHOWN, Topic.UNKNOWN_THING}


def test_a_list_keeps_names_and_order() -> None:
    questions = questions_in(prompt_of(PromptSettings(), ASKS, together=True))
    assert [question.key for question in questions] == [ask.item for ask in ASKS]
    assert [question.text for question in questions] == [ask.text.split("?")[0] + "?" for ask in ASKS]


def test_numbers_are_keys_where_there_are_no_names() -> None:
    questions = questions_in("Answer:\n3. Is there text?\n10) How many polyps are in the image?")
    assert [(question.key, question.topic) for question in questions] == [("3", Topic.TEXT), ("10", Topic.POLYP_COUNT)]


def test_words_around_a_question_do_not_hide_it() -> None:
    prompt = "You are shown an endoscopic image. Use the colour chart.\nWhat is the size of the polyp?\nBe brief."
    assert [question.topic for question in questions_in(prompt)] == [Topic.SIZE]


CLAIMS = {
    "Is there a polyp in the picture?": ("polyp", ""),
    "Are there any hemorrhoids in the picture?": ("hemorrhoids", ""),
    "Is there any short-segment Barrett's oesophagus in the picture?": ("short-segment barretts", ""),
    "Is the polyp in the picture larger than 20 mm?": ("polyp", ">20mm"),
    "Is the polyp in the picture of type Paris IIa?": ("polyp", "Paris IIa"),
}


@pytest.mark.parametrize("text", CLAIMS)
def test_a_question_about_one_known_object_names_it(text: str) -> None:
    (question,) = questions_in(text)
    assert (question.topic, question.claim) == (Topic.SHOWN, CLAIMS[text])


def test_unknown_objects_keep_their_topic() -> None:
    assert questions_in("Is there a dog in the picture?")[0].topic is None
    assert questions_in("Is the polyp in the picture wooden?")[0].topic == Topic.ABNORMALITIES
    assert all(question.claim == ("", "") for ask in ASKS for question in questions_in(ask.text))


def test_other_texts_are_answered_with_a_lack_of_understanding() -> None:
    assert questions_in("Who was the painter?")[0].topic is None
