"""Relations for orders: changed words, unchanged words, and orders without anything to change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from prompt_pools import ordered_seed, seed_of

from medtest.core.cases import FollowUp
from medtest.core.errors import NotApplicable
from medtest.core.scenes import Entity, Pool
from medtest.language.orders import order_pool, read_order
from medtest.testing import load_relation

CHANGES = ("side", "negation", "count", "attribute")
SAME = ("paraphrase", "bystander")
FILM = "Chest radiograph showing a left pleural effusion and two right lung nodules of 8 mm; no pneumothorax."


def words(name: str, text: str, draws: int = 24, **settings: Any) -> set[str]:
    """Return the changed words of some draws; the reason if a draw has none."""
    relation, seed, texts = load_relation(name, **settings), ordered_seed(text), set()
    for draw in range(draws):
        try:
            follow = relation.follow_up(seed, 0, np.random.default_rng(draw))
            texts.add(follow.prompt.text)
        except NotApplicable as reason:
            texts.add(f"SKIP: {reason}")
    return texts


def test_side_changes_the_word_for_the_side_and_nothing_else() -> None:
    assert words("side", FILM) == {
        FILM.replace("left pleural", "right pleural"),
        FILM.replace("right lung", "left lung"),
    }
    assert words("side", "CXR: L effusion") == {"CXR: R effusion"}
    assert words("side", "Right-sided PTX on a chest film.") == {"Left-sided PTX on a chest film."}


@pytest.mark.parametrize(
    "text", ["CXR: bilateral effusions", "CXR: cardiomegaly", "CXR: possible left pneumonia", "Normal CXR"]
)
def test_side_has_nothing_to_do_where_no_finding_is_on_one_side(text: str) -> None:
    assert words("side", text) == {"SKIP: no ordered finding is on one side alone"}


def test_negation_takes_the_attributes_along_and_reaches_no_further() -> None:
    assert words("negation", FILM) == {
        "Chest radiograph showing no pleural effusion but with two right lung nodules of 8 mm; no pneumothorax.",
        "Chest radiograph showing a left pleural effusion and no lung nodule; no pneumothorax.",
    }
    assert words("negation", "CXR: no pneumothorax, possible left mass") == {"CXR: a pneumothorax, possible left mass"}
    assert words("negation", "CXR: no effusion or pneumothorax") == {"SKIP: no finding is ordered or negated by itself"}


def test_count_changes_number_and_noun() -> None:
    assert words("count", "Colonoscopy image: polyp 5 mm") == {
        "Colonoscopy image: two polyps 5 mm",
        "Colonoscopy image: three polyps 5 mm",
    }
    assert words("count", "Two polyps in a colonoscopy image", most=2) == {"One polyp in a colonoscopy image"}


def test_an_attribute_changes_in_the_words_it_had() -> None:
    text = "Colonoscopy image of a sessile red polyp, 0.8 cm"
    assert words("attribute", text, among=["size"]) == {text.replace("0.8", size) for size in ("0.4", "1.5", "2.4")}
    assert words("attribute", text, among=["paris"]) == {
        text.replace("sessile", "pedunculated"),
        text.replace("sessile", "flat"),
    }
    assert text.replace("red", "blue") in words("attribute", text, draws=60, among=["colour"])
    assert words("attribute", "CXR: effusion") == {
        "SKIP: no ordered finding has a size, colour or Paris type that can change"
    }


def test_a_paraphrase_uses_synonyms_abbreviations_units_and_another_sequence() -> None:
    assert words("paraphrase", FILM, among=["order"]) == {
        "Chest radiograph showing two right lung nodules of 8 mm and a left pleural effusion; no pneumothorax."
    }
    assert words("paraphrase", FILM, among=["unit"]) == {FILM.replace("8 mm", "0.8 cm")}
    assert words("paraphrase", FILM, among=["abbreviation"]) == {
        FILM.replace("no pneumothorax", "no PTX"),
    }
    assert FILM.replace("Chest radiograph", "CXR") in words("paraphrase", FILM, among=["picture"])
    assert "CXR with an enlarged heart" in words("paraphrase", "CXR with a cardiac enlargement", among=["synonym"])


def test_a_bystander_is_changed_where_there_is_one_and_added_where_there_is_none() -> None:
    assert words("bystander", "CXR of a 64F: effusion", among=["sex"]) == {"CXR of a 64M: effusion"}
    assert words("bystander", "CXR: effusion", among=["sex"]) == {"CXR of a man: effusion", "CXR of a woman: effusion"}
    ages = words("bystander", "CXR of a 30-year-old man: effusion", draws=60, among=["age"])
    assert "CXR of an 85-year-old man: effusion" in ages
    assert not ages & {
        f"CXR of {article} {age}-year-old man: effusion" for article in ("a", "an") for age in range(16, 45)
    }


def test_articles_agree_with_the_words_that_follow_them() -> None:
    ages = words("bystander", "CXR of a 30-year-old man: effusion", draws=60, among=["age"])
    assert {"CXR of an 85-year-old man: effusion", "CXR of a 65-year-old man: effusion"} <= ages
    assert "CXR of an 80-year-old man: effusion" in words("bystander", "CXR of a man: effusion", 60, among=["age"])
    colours = words("attribute", "Colonoscopy image of a red polyp", draws=60, among=["colour"])
    assert {"Colonoscopy image of an orange polyp", "Colonoscopy image of a blue polyp"} <= colours
    scope = "endoscopy image taken with an Olympus scope: tube"
    assert words("bystander", scope, among=["scanner"]) == {
        scope.replace("an Olympus", "a Fujifilm"),
        scope.replace("an Olympus", "a Pentax"),
    }


def test_a_number_comes_before_the_attributes() -> None:
    assert words("count", "CXR: right lung nodule", most=2) == {"CXR: two right lung nodules"}
    assert words("count", "Red polyp in a colonoscopy image", most=2) == {"Two red polyps in a colonoscopy image"}
    assert words("count", "Polyp in a colonoscopy image", most=2) == {"Two polyps in a colonoscopy image"}


def test_a_finding_that_was_negated_is_joined_to_the_picture() -> None:
    assert words("negation", "Chest film without effusion") == {"Chest film with an effusion"}
    assert words("negation", "CXR of a man, no effusion") == {"CXR of a man, an effusion"}


def test_sides_in_capitals_change_as_well() -> None:
    assert words("side", "LEFT EFFUSION ON A CHEST FILM") == {"RIGHT EFFUSION ON A CHEST FILM"}


def follow_ups(name: str) -> list[tuple[Pool, FollowUp]]:
    """Return pools of made orders, and their follow-ups."""
    relation, pairs = load_relation(name), []
    for number in range(150):
        seed = ordered_seed(number)
        try:
            pairs.append((seed.prompt.pool, relation.follow_up(seed, 0, np.random.default_rng(number))))
        except NotApplicable:
            continue
    assert len(pairs) >= 12, f"{name} applies to {len(pairs)} of 150 made orders alone"
    return pairs


@pytest.mark.parametrize("name", CHANGES)
def test_the_changed_words_say_the_changed_pool_and_nothing_more(name: str) -> None:
    for before, follow in follow_ups(name):
        after = follow.prompt.pool
        assert order_pool(read_order(follow.prompt.text).order) == after
        data = follow.effect.data
        assert data["pool"] == after.as_json()
        exchanged = sum(bool(data["removed"].get(key) or data["added"].get(key)) for key in ("entities", "attributes"))
        assert exchanged == 1
        others = {entity.name for entity in before.entities} & {entity.name for entity in after.entities}
        assert len(others) >= len(before.entities) - 1


@pytest.mark.parametrize("name", SAME)
def test_other_words_keep_the_pool(name: str) -> None:
    for before, follow in follow_ups(name):
        assert sorted(map(str, before.entities)) == sorted(map(str, follow.prompt.pool.entities))
        assert (before.absent, before.uncertain) == (follow.prompt.pool.absent, follow.prompt.pool.uncertain)
        empty: dict[str, list[str]] = {"entities": [], "triples": []}
        assert (follow.effect.data["removed"], follow.effect.data["added"]) == (empty, empty)


@pytest.mark.parametrize("name", [*CHANGES, *SAME])
def test_prompts_of_other_words_are_skipped_with_the_reason(name: str) -> None:
    seed = seed_of(Pool(entities=(Entity(name="dog"),)), "A dog.")
    with pytest.raises(NotApplicable, match="not in controlled clinical English: it names no kind of picture"):
        load_relation(name).follow_up(seed, 0, np.random.default_rng(0))
