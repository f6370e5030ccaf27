"""Readings of prompts: command, style tags, denials, sizes, passives, spelling, and refusals."""

from __future__ import annotations

import pytest

from medtest.language.captions.reading.reader import read_prompt
from medtest.language.captions.reading.result import MEANINGS, REFUSING, ReadingReason


def test_a_command_is_kept_and_not_read_as_an_object() -> None:
    reading = read_prompt("Draw a fox next to a tree.")
    assert reading.command == "Draw"
    assert reading.pool.named() == (("fox", "near", "tree"),)
    assert (reading.confidence, reading.reasons) == ("medium", (ReadingReason.COMMAND,))


def test_style_tags_are_kept_and_not_read_as_objects() -> None:
    reading = read_prompt("two foxes in a basket, 8k, bokeh, photorealistic")
    assert reading.tags == ("8k", "bokeh", "photorealistic")
    assert [(entity.name, entity.count) for entity in reading.pool.entities] == [("fox", 2), ("basket", 1)]


@pytest.mark.parametrize(
    ("text", "absent", "triples"),
    [
        ("A man is not wearing a hat.", (("man", "wearing", "hat"),), ()),
        ("A dog on a beach with no people.", (), None),
        ("There are no cars on the street near the church.", (("car",),), (("street", "near", "church"),)),
        ("The door is not red.", (("door", "red"),), ()),
    ],
)
def test_denied_objects_are_absent_from_the_pool(
    text: str, absent: tuple[tuple[str, ...], ...], triples: tuple[tuple[str, str, str], ...] | None
) -> None:
    reading = read_prompt(text)
    if triples is None:  # who is without people, the dog or the beach?
        assert ReadingReason.NEGATION_UNCLEAR in reading.reasons
        return
    assert (reading.absent, reading.pool.named()) == (absent, triples)
    assert ReadingReason.NEGATION in reading.reasons


def test_the_agent_of_a_passive_acts() -> None:
    reading = read_prompt("A boat is pulled by two horses.")
    assert reading.pool.named() == (("horse", "pulling", "boat"),)


def test_a_size_is_not_a_count() -> None:
    reading = read_prompt("Colonoscopy image of a polyp, 5 mm, Paris Is")
    assert [(entity.name, entity.count) for entity in reading.pool.entities] == [("polyp", 1)]
    assert reading.measures == ((0, "5 mm"), (0, "Paris Is"))


def test_a_size_in_brackets_is_read_without_doubt() -> None:
    reading = read_prompt("Colonoscopy image of a polyp (5 mm)")
    assert (reading.measures, reading.confidence) == (((0, "5 mm"),), "medium")


def test_a_misspelt_word_is_the_nearest_word() -> None:
    reading = read_prompt("A brwon dog on a sofa.")
    assert reading.pool.entities[0].attributes == ("brown",)
    assert reading.reasons == (ReadingReason.MISSPELT,)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Ein alter Mann mit einem Hut", ReadingReason.OTHER_LANGUAGE),
        ("猫が窓のそばに座っている", ReadingReason.OTHER_LANGUAGE),
        ("A qwxzy next to a tree.", ReadingReason.UNKNOWN_WORDS),
        ("A man feeding a horse with a hat and a dog in a coat.", ReadingReason.UNCLEAR),
        ("Draw it.", ReadingReason.NOTHING_NAMED),
        ("A man (old) sits on a bench.", ReadingReason.UNCLEAR),  # a thing "sit" is on the bench
        ("1,000 birds on a wire", ReadingReason.UNCLEAR),
        ("2dogs on a bed", ReadingReason.UNCLEAR),
        ("twenty-one dogs on a bed", ReadingReason.UNCLEAR),
        ("a girl aged 10 holding a ball", ReadingReason.UNCLEAR),  # ten holdings
    ],
)
def test_unreadable_texts_are_refused_with_a_reason(text: str, reason: ReadingReason) -> None:
    reading = read_prompt(text)
    assert reason in reading.reasons
    assert not reading.is_understood


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ReadingReason) >= REFUSING


@pytest.mark.parametrize(
    ("denial", "absent"),
    [
        ("There is no traffic light.", [("traffic light",)]),
        ("No traffic light is seen.", [("traffic light",)]),
        ("There is no sign of a coffee table.", [("coffee table",)]),
        ("No evidence of a tennis racket.", [("tennis racket",)]),
        (
            "There is no traffic light, no stop sign and no parking meter.",
            [("traffic light",), ("stop sign",), ("parking meter",)],
        ),
        ("There is no hip prosthesis.", [("hip prosthesis",)]),
        ("No pleural effusion is visible.", [("pleural effusion",)]),
    ],
)
def test_a_separate_sentence_denies_objects_named_by_two_words(denial: str, absent: list[tuple[str, ...]]) -> None:
    reading = read_prompt(f"A dog on a bed. {denial}")
    assert list(reading.absent) == absent
    assert reading.pool.named() == (("dog", "on", "bed"),)
    assert reading.reasons == (ReadingReason.NEGATION,)


@pytest.mark.parametrize("denial", ["There is no red car.", "No sign is seen of a traffic light."])
def test_other_denials_are_refused(denial: str) -> None:
    assert ReadingReason.NEGATION_UNCLEAR in read_prompt(f"A dog on a bed. {denial}").reasons
