"""The product's own reading of questions."""

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
ASKS = tuple(Ask(item=one.name, text=one.text, kind=one.kind.value, id=one.id) for one in official())


@pytest.mark.parametrize("question", official(), ids=lambda one: one.name)
def test_all_wordings_of_the_contest_are_understood(question) -> None:
    for text in (question.text, *question.spellings):
        assert topic_of(text) == Topic(MEANT.get(question.name, question.name)), text


def test_the_questions_are_eighteen_topics() -> None:
    assert {topic_of(one.text) for one in official()} == set(Topic) - {Topic.SHOWN, Topic.UNKNOWN_THING}


def test_a_list_keeps_names_and_order() -> None:
    found = questions_in(prompt_of(PromptSettings(), ASKS, together=True))
    assert [one.key for one in found] == [ask.item for ask in ASKS]
    assert [one.text for one in found] == [ask.text.split("?")[0] + "?" for ask in ASKS]


def test_numbers_are_keys_where_there_are_no_names() -> None:
    found = questions_in("Answer:\n3. Is there text?\n10) How many polyps are in the image?")
    assert [(one.key, one.topic) for one in found] == [("3", Topic.TEXT), ("10", Topic.POLYP_COUNT)]


def test_words_around_a_question_do_not_hide_it() -> None:
    prompt = "You are shown an endoscopic image. Use the colour chart.\nWhat is the size of the polyp?\nBe brief."
    assert [one.topic for one in questions_in(prompt)] == [Topic.SIZE]


CLAIMS = {
    "Is there a polyp in the picture?": ("polyp", ""),
    "Are there any hemorrhoids in the picture?": ("hemorrhoids", ""),
    "Is there any short-segment Barrett's oesophagus in the picture?": ("short-segment barretts", ""),
    "Is the polyp in the picture larger than 20 mm?": ("polyp", ">20mm"),
    "Is the polyp in the picture of type Paris IIa?": ("polyp", "Paris IIa"),
}


@pytest.mark.parametrize("text", CLAIMS)
def test_a_question_about_one_known_thing_names_it(text: str) -> None:
    (found,) = questions_in(text)
    assert (found.topic, found.claim) == (Topic.SHOWN, CLAIMS[text])


def test_things_that_the_product_does_not_know_keep_their_topic() -> None:
    assert questions_in("Is there a dog in the picture?")[0].topic is None
    assert questions_in("Is the polyp in the picture wooden?")[0].topic == Topic.ABNORMALITIES
    assert all(one.claim == ("", "") for ask in ASKS for one in questions_in(ask.text))


def test_what_is_not_understood_is_said_so() -> None:
    assert questions_in("Who was the painter?")[0].topic is None
