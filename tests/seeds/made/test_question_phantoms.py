"""Drawn pictures with questions as seeds, and the two suites that ask them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from medtest.core.cases import Address
from medtest.core.errors import NotApplicable, UserMistakes
from medtest.core.plugins import part
from medtest.language.questions.questions import by_name, in_slide_order, kept
from medtest.phantoms.questions import make
from medtest.preparation import prepare
from medtest.seeds.base import SeedSource
from medtest.suite.compose import load_suite

NINE = [
    *("saturation", "contrast", "white_balance", "specularity", "blur"),
    *("instrument", "feces", "blood", "text"),
]


def source_of(suite_seed: int = 3, **settings: Any) -> SeedSource:
    info = part("seeds", "question_phantoms")
    cls = info.load()
    values = {**info.defaults, **settings}
    source: SeedSource = cls(dataset="made", settings=cls.Settings(**values), root=None, suite_seed=suite_seed)
    return source


def test_pictures_are_seeds_with_the_18_questions_in_the_order_of_the_slides() -> None:
    source = source_of(size=128, start=18, count=3)
    refs = source.refs()
    assert [ref.seed_id for ref in refs] == ["scene-00018", "scene-00019", "scene-00020"]
    names = tuple(question.name for question in in_slide_order())
    for number, ref in enumerate(refs, start=18):
        seed, drawn = source.load(ref), make(number, 3, size=128)
        assert ref.items == names == tuple(ask.item for ask in seed.asks)
        assert (seed.image == drawn.image).all()
        assert seed.expected is not None
        assert (np.asarray(seed.expected) == drawn.mask).all()
        assert (seed.kind, seed.together, source.phantom, source.task) == ("answer", False, True, "answer")
        for ask in seed.asks:
            official = by_name(ask.item)
            assert official is not None
            assert (ask.id, ask.text, ask.kind) == (official.id, official.text, official.kind.value)
            assert ask.truth == drawn.answers[ask.item]
        assert prepare(seed, size=64).asks == seed.asks


def test_questions_are_chosen() -> None:
    assert source_of(questions=["text", "polyps"]).refs()[0].items == ("polyps", "text")
    assert source_of(questions="kept").refs()[0].items == tuple(question.name for question in kept())
    source = source_of(questions=["text"], ask="together", size=128)
    seed = source.load(source.refs()[0])
    assert seed.together
    assert [ask.item for ask in seed.asks] == ["text"]


@pytest.mark.parametrize(
    "wrong",
    [{"questions": ["polips"]}, {"questions": "some"}, {"questions": []}, {"ask": "both"}, {"size": 64}, {"count": 0}],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        source_of(**wrong)


def test_the_digest_covers_settings_of_pictures_and_questions() -> None:
    cases: list[dict[str, Any]] = [
        {}, {"count": 3}, {"start": 1}, {"size": 200}, {"questions": "kept"}, {"ask": "together"}, {"suite_seed": 4},
    ]  # fmt: skip
    assert len({source_of(**case).digest() for case in cases}) == len(cases)
    assert source_of().digest() == source_of(size=512).digest(), "512 is the generator's own size"


# ---------------------------------------------------------------------------------------------------------- suites


def test_the_suite_asks_twenty_pictures_18_questions_under_nine_artefacts() -> None:
    suite = load_suite("medvqa")
    relations = suite.build_relations()
    assert [name for name in relations if name != "unchanged"] == NINE
    assert all(relations[name].severities() == (3,) for name in NINE)
    assert relations["unchanged"].repeats() == 3
    (source,) = suite.build_seeds(None)
    refs = source.refs()
    assert (len(refs), {len(ref.items) for ref in refs}) == (20, {18})
    assert [system.id for system in suite.systems] == ["simlab"]
    assert (suite.kind, suite.oracle.part.info.name, suite.oracle.primary.score) == ("answer", "answers", "answer")
    assert suite.prepare.size == 512


def test_real_images_need_a_model_and_the_message_lists_them() -> None:
    with pytest.raises(UserMistakes) as caught:
        load_suite("medvqa_clef")
    (mistake,) = caught.value.mistakes
    assert mistake.key == "systems"
    allowed = mistake.allowed.split(", ")
    assert {"openai_compatible", "gpt_4o", "qwen_vl", "transformers"} <= set(allowed)
    assert not {"pranet", "dsinet", "median"} & set(allowed), "they answer no questions"
    assert "base_url=URL model_name=NAME" in mistake.fix


def test_other_suites_name_systems_of_their_kind() -> None:
    with pytest.raises(UserMistakes) as caught:
        load_suite("polyp_seg", ["systems={}", "~systems.pranet", "~systems.ssformer"])
    allowed = next(mistake.allowed for mistake in caught.value.mistakes if mistake.key == "systems").split(", ")
    assert "pranet" in allowed
    assert "openai_compatible" not in allowed


@pytest.mark.slow
def test_every_artefact_can_be_laid_on_every_scene() -> None:
    """Objects and text do not cover what must stay visible; only instruments, which enter at one hour, lack room."""
    refused = 0
    suite = load_suite("medvqa", ["seeds.phantoms.size=256", "prepare.size=256"])
    (source,) = suite.build_seeds(None)
    for ref in source.refs():
        seed = prepare(source.load(ref), size=256)
        assert seed.mask is not None
        for name, relation in suite.build_relations().items():
            address = Address(dataset=ref.dataset, seed_id=ref.seed_id, relation=name, severity=3)
            try:
                image = relation.follow_up(seed, 3, relation.generator(address, suite.seed)).image
            except NotApplicable:
                assert name == "instrument", (ref.seed_id, name)
                refused += 1
                continue
            assert (name == "unchanged") == bool((image == seed.image).all()), (ref.seed_id, name)
            if name in ("instrument", "feces", "blood", "text"):
                assert (image[seed.mask] == seed.image[seed.mask]).all(), (ref.seed_id, name)
    assert refused <= 10  # of 20 scenes


@pytest.mark.parametrize("layout", ["gt.json", "images"])
def test_the_suite_on_own_images_loads(tmp_path: Path, layout: str) -> None:
    from question_layouts import clef, images_alone

    (clef if layout == "gt.json" else images_alone)(tmp_path)
    suite = load_suite("medvqa_clef", ["model=openai_compatible"])
    (source,) = suite.build_seeds(tmp_path)
    assert len(source.refs()) == 3
    assert [name for name in suite.build_relations() if name != "unchanged"] == NINE
