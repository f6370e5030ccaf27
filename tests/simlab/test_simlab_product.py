"""Answers of the product: styles, structure, repeatability, and defects at their rates."""

from __future__ import annotations

import json
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.stats import binomtest

from medtest.core.cases import Ask
from medtest.language.questions.answers.parse import parse
from medtest.language.questions.answers.values.answer import State
from medtest.language.questions.questions import official
from medtest.language.questions.values import Kind
from medtest.relations.controls.premise import asks_about
from medtest.simlab.answering.draws import Draws
from medtest.simlab.answering.phrasing import REFUSALS, STYLES, phrase
from medtest.simlab.answering.topics import Topic, topic_of
from medtest.simlab.defects import Defects, others
from medtest.simlab.product import Product, Settings, picture_sha256
from medtest.simlab.seeing.sight import PictureTraits, Sight, Thing, answers
from medtest.systems.answering.shapes import shape_of, shape_of_all
from medtest.tasks.ask.controls import affirms

PICTURE = np.zeros((32, 32, 3), np.uint8)
SEEN = Sight(
    findings=(Thing(name="polyp", cells=(0,), colours=("red",), millimetres=7.0, shape="sessile"),),
    tools=(Thing(name="polyp snare", cells=(8, 5)),),
    text=True,
    removed=False,
    easy=True,
)
ASKS = tuple(
    Ask(item=question.name, text=question.text, kind=question.kind.value, id=question.id) for question in official()
)
WORDS: dict[str, list[tuple[str, ...]]] = {
    "yes_no": [("Yes",), ("No",), ("Not relevant",)],
    "count": [("0",), ("One",), ("2",), ("Three",)],
    "place": [("center",), ("Upper-left", "Center"), ("Not relevant",)],
    "colour": [("Pink",), ("red", "white"), ("Not relevant",)],
    "size": [("<5mm",), ("5-10mm",), ("11-20mm",), (">20mm",), ("Not relevant",), ("5-10mm", ">20mm")],
    "polyp_type": [("paris is",), ("Paris IIa",), ("Not relevant",), ("Paris Is", "Paris Ip")],
    "procedure": [("Colonoscopy",), ("Gastroscopy",), ("Capsule endoscopy",)],
}
LISTS = {
    "abnormalities": [("Polyp",), ("No",), ("oesophagitis", "ulcerative colitis")],
    "landmarks": [("z-line",), ("none",), ("Cecum",)],
    "instruments": [("Polyp snare",), ("none",), ("Metal clip", "Tube")],
}


def product(seed: int = 0, styles: tuple[str, ...] = STYLES, **defects: Any) -> Product:
    return Product(Settings(seed=seed, styles=styles, defects=Defects(**defects)), lambda _: SEEN)


def answer_of(
    product_: Product, words: tuple[str, ...], text: str, *, sha256: str = "a", seed: int = 0, **traits: bool
) -> str:
    return product_.answer_as(words, text, traits=PictureTraits(**traits), sha256=sha256, seed=seed)


@pytest.mark.parametrize("question", official(), ids=lambda question: question.name)
def test_every_style_gives_the_meant_answer(question) -> None:
    # The parser was written without the product and the product without the parser.
    for words in LISTS.get(question.name) or WORDS[question.kind.value]:
        truth = question.parse_truth(words)
        for style in STYLES:
            text = answer_of(product(styles=(style,)), words, question.text)
            parsed = question.parse(text)
            assert (parsed.state, parsed.value) == (truth.state, truth.value), (style, text)
    for refusal in REFUSALS:
        assert question.parse(refusal).state == State.REFUSAL


def test_questions_about_one_object_get_yes_or_no() -> None:
    for style in ("terse", "sentence", "chatty", "markdown", "json"):
        for text, truth in (
            ("Is there a polyp in the picture?", "yes"),
            ("Is there a tube in the picture?", "no"),
            ("Is the polyp in the picture from 5 to 10 mm large?", "yes"),
            ("Is the polyp in the picture of type Paris Ip?", "no"),
        ):
            assert str(parse(product(styles=(style,)).answer(PICTURE, text), Kind.YES_NO)) == truth, (style, text)


@pytest.mark.parametrize("topic", [topic for topic in Topic if topic not in (Topic.SHOWN, Topic.UNKNOWN_THING)])
def test_another_answer_shares_nothing_with_the_first(topic: Topic) -> None:
    question = next(question_ for question_ in official() if topic_of(question_.text) == topic)
    for words in LISTS.get(question.name) or WORDS[question.kind.value]:
        first = question.parse_truth(words)
        choices = others(words, topic)
        assert choices
        for choice in choices:
            other = question.parse(choice)
            assert (other.state, other.value) != (first.state, first.value), (words, choice)


def test_the_same_request_has_the_same_answer_however_its_picture_is_packed() -> None:
    rng = np.random.default_rng(3)
    picture = np.repeat(rng.integers(0, 256, (40, 6, 3), dtype=np.uint8), 8, axis=1)
    packed = [cv2.imencode(".png", picture, [cv2.IMWRITE_PNG_COMPRESSION, level])[1] for level in (0, 9)]
    assert len(packed[0]) != len(packed[1])
    first, second = (cv2.imdecode(png, cv2.IMREAD_COLOR) for png in packed)
    assert picture_sha256(first) == picture_sha256(second)
    product_, again = (product(nondeterminism=0.5, refusals=0.2) for _ in range(2))
    texts = [question.text for question in official()]
    answered = [product_.answer(first, text, seed=seed) for text in texts for seed in range(5)]
    assert answered == [again.answer(second, text, seed=seed) for text in texts for seed in range(5)]


def test_a_picture_is_looked_at_once() -> None:
    looked: list[int] = []

    def look(picture: Any) -> Sight:
        looked.append(int(picture.sum()))
        return SEEN

    product_ = Product(Settings(), look)
    for _ in range(3):
        product_.answer(PICTURE, "Is there text?")
        product_.answer(PICTURE + 1, "Is there text?")
    assert len(looked) == 2


@pytest.mark.parametrize("rate", [0.05, 0.3])
@pytest.mark.parametrize(
    ("defect", "traits"),
    [
        ("saturation_flips", {"saturated": True}),
        ("blur_not_relevant", {"blurred": True}),
        ("blood_instruments", {"bloody": True}),
        ("counts_capped", {}),
        ("nondeterminism", {}),
        ("refusals", {}),
    ],
)
def test_defects_have_their_rates_and_need_their_traits(defect: str, traits: dict[str, bool], rate: float) -> None:
    text = "How many instruments are in the image?"
    product_ = product(seed=1, styles=("terse",), **{defect: rate})
    answers = [answer_of(product_, ("2",), text, sha256=str(k), **traits) for k in range(2000)]
    wrong = sum(answer != "2" for answer in answers)
    assert binomtest(wrong, 2000, rate).pvalue > 1e-4, wrong
    if traits:
        assert all(answer_of(product_, ("2",), text, sha256=str(k)) == "2" for k in range(300))


def test_answers_of_each_defect() -> None:
    sure = {"styles": ("terse",)}
    many = "How many instruments are in the image?"
    assert answer_of(product(**sure, counts_capped=1.0), ("Three",), many) == "1"
    assert answer_of(product(**sure, counts_capped=1.0, cap=4), ("Three",), many) == "Three"
    assert answer_of(product(**sure, blood_instruments=1.0), ("Zero",), many, bloody=True) == "1"
    named = answer_of(product(**sure, blood_instruments=1.0), ("Polyp snare",), ASKS[14].text, bloody=True)
    assert named.startswith("Polyp snare, ")
    assert answer_of(product(**sure, blur_not_relevant=1.0), ("Yes",), "Is there text?", blurred=True) == "Not relevant"
    assert answer_of(product(**sure, saturation_flips=1.0), ("Yes",), "Is there text?", saturated=True) == "No"
    assert answer_of(product(**sure, refusals=1.0), ("Yes",), "Is there text?") in REFUSALS


def test_only_two_defects_differ_between_repeats() -> None:
    text = "What type of procedure is the image taken from?"
    steady = product(styles=("terse",), saturation_flips=0.5)
    fresh = product(styles=("terse",), nondeterminism=0.5)
    for product_, count in ((steady, 1), (fresh, 3)):
        answers = {answer_of(product_, ("Colonoscopy",), text, seed=seed, saturated=True) for seed in range(200)}
        assert len(answers) == count


def test_all_questions_at_once_by_schema_and_in_words() -> None:
    prompt = "\n".join(f"{number}. {ask.item}: {ask.text}" for number, ask in enumerate(ASKS, start=1))
    product_ = product()
    shape = shape_of_all(ASKS)
    filled = json.loads(product_.answer(PICTURE, prompt, schema=shape.model_json_schema()))
    assert shape.model_validate(filled)
    assert filled["polyps"] == 1
    assert filled["instrument_place"] == ["Lower-right", "Center-right"]
    assert filled["landmarks"] == []
    assert filled["polyp_type"] == "Paris Is"
    for seed in range(6):
        text = product_.answer(PICTURE, prompt, seed=seed)
        lines = json.loads(text) if text.startswith("{") else dict(line.split(": ", 1) for line in text.splitlines())
        assert list(lines) == [ask.item for ask in ASKS]
        assert lines["text"] == "Yes"


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.item)
def test_one_question_by_schema(ask: Ask) -> None:
    shape = shape_of(ask)
    text = product().answer(PICTURE, ask.text, schema=shape.model_json_schema())
    assert shape.model_validate_json(text)
    assert product(refusals=1.0).answer(PICTURE, ask.text, schema=shape.model_json_schema())


def test_sights_are_answered_in_the_contests_words() -> None:
    assert answers(SEEN, Topic.SIZE) == ("5-10mm",)
    assert answers(SEEN, Topic.TOOL_PLACE) == ("Lower-right", "Center-right")
    assert answers(SEEN, Topic.LANDMARK_COLOUR) == ("Not relevant",)
    assert answers(Sight(), Topic.REMOVED) == ("Not relevant",)
    assert answers(Sight(), Topic.ABNORMALITIES) == ("None",)


def test_known_truth_is_answered() -> None:
    product_ = product(styles=("terse",))
    product_.learn(picture_sha256(PICTURE), {"How many polyps are in the image?": ["Three"]})
    assert product_.answer(PICTURE, "How many polyps are in the image?") == "Three"
    assert product_.answer(PICTURE, "Is there text?") == "Yes"
    assert product_.answer(PICTURE + 1, "How many polyps are in the image?") == "1"


def test_draws_are_even() -> None:
    shares = np.array([Draws(0, k).share("x") for k in range(4000)])
    assert abs(shares.mean() - 0.5) < 0.02
    assert {Draws(0, k).one_of("y", "abc") for k in range(50)} == set("abc")
    assert phrase(product().say, None, Draws(0)).startswith("I do not understand")  # type: ignore[arg-type]


@pytest.mark.parametrize("style", STYLES)
def test_unknown_objects_are_denied_in_words_that_the_reader_reads(style: str) -> None:
    changed = asks_about("hip prosthesis", ASKS)
    assert len(changed) >= 8
    for ask in changed.values():
        answer = product(styles=(style,)).answer(PICTURE, ask.text)
        read = parse(answer, Kind(ask.kind), ask.id)
        assert read.state != State.UNPARSED and not affirms(read), (ask.text, answer)
