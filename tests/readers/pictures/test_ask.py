"""Questions about pools, scenes from their answers, and a system behind a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medtest.api.faulty.faults import Faults
from medtest.api.faulty.server import serving
from medtest.core.cases import image_sha256
from medtest.core.errors import MedtestError
from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, Triple, dumped, pool_of
from medtest.language.questions.answers.parse import parse
from medtest.language.questions.values import Kind
from medtest.readers.pictures.ask import AskReaderSettings, PictureAsker
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.labelled import LabelledPicture, LabelledPictures, make_card
from medtest.readers.pictures.pool_questions import following, presence, questions_of, scene_of

POOL = pool_of(
    [
        Entity(name="dog", count=2, attributes=("brown",)),
        Entity(name="table", attributes=("wooden",)),
        Entity(name="snow", count=None),
    ],
    [(0, "left of", 1)],
)
SOURCE = pool_of([Entity(name="cat"), Entity(name="table")], [(0, "on", 1)])
THERE = {
    "Is there a dog in the picture?": "Yes",
    "Is there a table in the picture?": "Yes.",
    "Is there any snow in the picture?": "No",
    "Is there a cat in the picture?": "No.",
    "How many dogs are in the picture?": "2",
    "How many tables are in the picture?": "one",
    "What colour is the dog in the picture?": "brown; white",
    "Is the table in the picture wooden?": "no",
    "Is a dog to the left of a table in the picture?": "yes",
}


def _scene(answers: Mapping[str, str], *pools: Pool) -> Scene:
    """Return the scene of answers; a question without an answer fails the test."""
    questions = questions_of(pools)
    first = {key: parse(answers[ask.text], Kind(ask.kind)) for key, ask in presence(questions)}
    present = frozenset(name for name in questions.classes if str(first[name]) == "yes")
    rest = {key: parse(answers[ask.text], Kind(ask.kind)) for key, ask in following(questions, present)}
    return scene_of(questions, {**first, **rest})


def test_names_of_both_pools_are_asked_for_and_void_if_their_parent_is_missing() -> None:
    scene = _scene(THERE, POOL, SOURCE)  # no question is about the missing cat, nor about its place
    assert scene.names() == {"dog": 2, "table": 1}
    assert {entity.attributes for entity in scene.entities if entity.name == "dog"} == {("brown", "white")}
    assert scene.named() == (("dog", "left of", "table"),)
    tells = scene.tells
    assert tells.classes == {"cat", "dog", "snow", "table"}
    assert tells.predicates == {"left of", "on"}  # "on" is void: it does not hold
    assert tells.attributes == {"brown", "white", "wooden"}
    assert tells.counts


@pytest.mark.parametrize(
    ("question", "answer", "lost"),
    [
        (
            "Is there a dog in the picture?",
            "cannot tell",
            {"classes": "dog", "predicates": "left of", "attributes": "brown"},
        ),
        ("Is there a dog in the picture?", "probably yes", {"classes": "dog"}),
        ("Is there a dog in the picture?", "not relevant", {"classes": "dog"}),
        ("Is there a cat in the picture?", "I cannot answer this question.", {"classes": "cat", "predicates": "on"}),
        ("How many dogs are in the picture?", "several", {"counts": ""}),
        ("How many dogs are in the picture?", "about 2", {"counts": ""}),
        ("How many dogs are in the picture?", "0", {"classes": "dog", "counts": ""}),
        ("What colour is the dog in the picture?", "hm", {"attributes": "brown"}),
        ("Is the table in the picture wooden?", "I don't know", {"attributes": "wooden"}),
        ("Is a dog to the left of a table in the picture?", "beside it", {"predicates": "left of"}),
    ],
)
def test_unclear_answers_leave_no_reading(question: str, answer: str, lost: dict[str, str]) -> None:
    plain, scene = _scene(THERE, POOL, SOURCE), _scene({**THERE, question: answer}, POOL, SOURCE)
    for kind, name in lost.items():
        if kind == "counts":
            assert plain.tells.counts
            assert not scene.tells.counts
        else:
            assert name in getattr(plain.tells, kind)
            assert name not in getattr(scene.tells, kind)
    if "classes" not in lost:
        assert scene.tells.classes == plain.tells.classes


def test_questions_are_english() -> None:
    pool = pool_of(
        [
            Entity(name="man"),
            Entity(name="jeans"),
            Entity(name="umbrella"),
            Entity(name="man"),
            Entity(name="glass", count=3),
        ],
        [(0, "wearing", 1), (0, "has", 2), (0, "behind", 3)],
    )
    questions = questions_of([pool])
    texts = [ask.text for _, ask in presence(questions)]
    assert texts == [
        "Is there a glass in the picture?",
        "Are there any jeans in the picture?",
        "Is there a man in the picture?",
        "Is there an umbrella in the picture?",
    ]
    more = [ask.text for _, ask in following(questions, frozenset(questions.classes))]
    assert "How many glasses are in the picture?" in more
    assert "How many men are in the picture?" in more
    assert "Is a man wearing jeans in the picture?" in more
    assert "Does a man have an umbrella in the picture?" in more
    assert "Is a man behind another man in the picture?" in more


def test_a_thing_is_related_to_another_of_its_class() -> None:
    pool = pool_of([Entity(name="dog"), Entity(name="dog")], [(0, "behind", 1)])
    answers = {
        "Is there a dog in the picture?": "yes",
        "How many dogs are in the picture?": "2",
        "Is a dog behind another dog in the picture?": "yes",
    }
    (triple,) = _scene(answers, pool).triples
    assert triple == Triple(subject=0, predicate="behind", object=1)


# ------------------------------------------------------------------------------------------------------- over a server


def _question(body: Mapping[str, Any]) -> str:
    parts = body["messages"][-1]["content"]
    assert any(part["type"] == "image_url" for part in parts)
    return next(str(part["text"]) for part in parts if part["type"] == "text")


@contextmanager
def _asker(answer: Callable[[Mapping[str, Any]], str], **more: Any) -> Iterator[PictureAsker]:
    with serving(Faults(), answer=answer) as server:
        settings = {"base_url": server.base_url, "model": "eyes", "structured": "never", "attempts": 1}
        reader = PictureAsker("ask", AskReaderSettings(settings=settings, **more))
        assert reader.check() == []
        try:
            yield reader
        finally:
            reader.close()


def _content(image: np.ndarray[Any, Any], *pools: Pool) -> PictureContent:
    return PictureContent(image_sha256(image), tuple(dumped(pool.as_json()) for pool in pools))


IMAGE = np.full((24, 32, 3), 120, np.uint8)


def test_a_system_over_a_server_is_asked_and_nothing_twice(tmp_path: Path) -> None:
    sent: list[str] = []

    def answer(body: Mapping[str, Any]) -> str:
        sent.append(_question(body))
        assert "picture" in body["messages"][0]["content"]
        return THERE[sent[-1]]

    with _asker(answer) as reader:
        reader.keep_in([tmp_path])
        reader.open(device="cpu", threads=1)
        (scene,) = reader.look([IMAGE], [_content(IMAGE, POOL, SOURCE)])
        assert scene == _scene(THERE, POOL, SOURCE)
        assert sorted(sent) == sorted(THERE)
        reader.close()
        reader.open(device="cpu", threads=1)
        assert reader.look([IMAGE], [_content(IMAGE, POOL, SOURCE)]) == [scene]
        assert len(sent) == len(THERE)  # all are in its ledger
        assert "has no card" in reader.notice()
        printed = json.dumps(reader.fingerprint())
        assert "127.0.0.1" not in printed
        assert "eyes" in printed


def test_two_processes_of_a_reader_have_separate_folders(tmp_path: Path) -> None:
    with _asker(lambda body: "no") as first, _asker(lambda body: "no") as second:
        for reader in (first, second):
            reader.keep_in([tmp_path])
            reader.open(device="cpu", threads=1)
        assert second.look([IMAGE], [_content(IMAGE, POOL)])[0].tells.classes == {"dog", "snow", "table"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reader-ask-0", "reader-ask-1"]


def test_a_server_that_fails_is_no_answer() -> None:
    def answer(body: Mapping[str, Any]) -> str:
        raise RuntimeError("no such model")

    with _asker(answer) as reader:
        reader.open(device="cpu", threads=1)
        with pytest.raises(MedtestError, match="gave no answer to"):
            reader.look([IMAGE], [_content(IMAGE, POOL)])


def test_requests_to_other_machines_need_permission() -> None:
    settings = {"base_url": "https://eyes.invalid/v1", "model": "eyes"}
    assert {mistake.key for mistake in PictureAsker("ask", AskReaderSettings(settings=settings)).check()} == {
        "send_images",
        "send_prompts",
    }
    sent = AskReaderSettings(settings={**settings, "send_images": True}, send_prompts=True)
    assert PictureAsker("ask", sent).check() == []


@pytest.mark.parametrize(
    ("settings", "key"),
    [({"system": "pranet"}, "system"), ({"settings": {"modle": "x"}}, "settings.modle"), ({"system": "gpt"}, "system")],
)
def test_an_unknown_system_is_a_mistake(settings: dict[str, Any], key: str) -> None:
    assert key in [mistake.key for mistake in PictureAsker("ask", AskReaderSettings(**settings)).check()]


def test_its_card_counts_present_and_absent_things() -> None:
    """A system that says yes to all sees everything that a question names."""

    def yes(body: Mapping[str, Any]) -> str:
        text = _question(body)
        return "1" if text.startswith("How many") else "red" if text.startswith("What") else "yes"

    def pictures(count: int) -> list[LabelledPicture]:
        red = (SeenEntity(name="dog", attributes=("red",)), SeenEntity(name="cat", attributes=("blue",)))
        triples = (Triple(subject=0, predicate="on", object=1),)
        truths = [Scene(entities=red, triples=triples), Scene(entities=(SeenEntity(name="owl"),))]
        return [
            LabelledPicture(name=str(n), pixels=lambda n=n: np.full((8, 8, 3), n, np.uint8), truth=truths[n % 2])
            for n in range(count)
        ]

    labelled = LabelledPictures(
        pictures=pictures(6),
        classes=frozenset({"dog", "cat", "owl"}),
        predicates=frozenset({"on"}),
        attributes=frozenset({"red", "blue"}),
    )
    with _asker(yes) as reader:
        reader.open(device="cpu", threads=1)
        card = make_card(reader, labelled)
    dog = card.row("class", "dog")
    assert dog is not None
    assert dog.counts == (3, 3, 3, 3)
    assert not dog.reliable
    assert card.of_kind("predicate") == ()  # between classes that it cannot recognise
    assert card.reader == reader.print_without_card


def test_findings_are_asked_for_in_clinical_words_and_with_all_attributes_of_a_kind() -> None:
    pool = Pool(
        entities=(
            Entity(name="effusion", count=None, attributes=("left",)),
            Entity(name="polyp", count=2, attributes=("5-10mm", "Paris Ip", "red")),
        ),
        absent=("edema", "hemorrhoids"),
    )
    answers = {
        "Is there a pleural effusion in the picture?": "Yes",
        "Is there a polyp in the picture?": "Yes",
        "Is there any pulmonary edema in the picture?": "No",
        "Are there any hemorrhoids in the picture?": "No",
        "Is the pleural effusion in the picture on the patient's left side?": "No",
        "Is the pleural effusion in the picture on the patient's right side?": "Yes",
        "How many polyps are in the picture?": "2",
        "What colour is the polyp in the picture?": "red",
        "Is the polyp in the picture smaller than 5 mm?": "No",
        "Is the polyp in the picture from 5 to 10 mm large?": "Yes",
        "Is the polyp in the picture from 11 to 20 mm large?": "No",
        "Is the polyp in the picture larger than 20 mm?": "No",
        "Is the polyp in the picture of type Paris Ip?": "No",
        "Is the polyp in the picture of type Paris Is?": "Yes",
        "Is the polyp in the picture of type Paris IIa?": "No",
    }
    scene = _scene(answers, pool)
    assert scene.names() == {"effusion": 1, "polyp": 2}
    assert [entity.attributes for entity in scene.entities[:2]] == [("right",), ("5-10mm", "Paris Is", "red")]
    assert scene.tells.classes == {"edema", "effusion", "hemorrhoids", "polyp"}
    assert scene.tells.describes(">20mm") and scene.tells.describes("blue")
