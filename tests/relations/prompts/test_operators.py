"""ACTesting's operators: the effect of each on any pool, and on its words."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_pools import ordered_seed, pools, seed_of
from relation_files import assert_every_key_is_documented

from medtest.core.cases import Address, FollowUp, PreparedSeed
from medtest.core.errors import NotApplicable, UserMistakes
from medtest.core.plugins import parts
from medtest.core.scenes import Entity, Pool, difference, pool_of
from medtest.language.captions.render import render
from medtest.language.captions.vocabulary import vg150
from medtest.relations.base import Relation
from medtest.relations.prompts.worlds import related, world_of
from medtest.testing import check_relation, load_relation, synthetic_prompt, synthetic_seed

NAMES = sorted(name for name, info in parts("relations").items() if info.load().group == "prompts")
OPERATORS = ("ec", "ec_er_a", "ec_er_r", "er_a", "er_r", "ss")
draws = st.integers(0, 2**32 - 1)


@cache
def relation_of(name: str) -> Relation:
    return load_relation(name)


def apply_operator(name: str, seed: PreparedSeed, draw: int) -> FollowUp | None:
    """Return a follow-up; None if the relation is not applicable."""
    try:
        return relation_of(name).follow_up(seed, 0, np.random.default_rng(draw))
    except NotApplicable as reason:
        assert str(reason)
        return None


def changed(before: Pool, after: Pool) -> list[int]:
    return [at for at, (old, new) in enumerate(zip(before.entities, after.entities, strict=True)) if old != new]


def is_part(smaller: Pool, larger: Pool) -> bool:
    """Return whether entities with their attributes, and triples, are a sub-multiset."""
    return Counter(smaller.entities) <= Counter(larger.entities) and Counter(smaller.named()) <= Counter(larger.named())


def test_all_operators_are_there() -> None:
    assert set(OPERATORS) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_yaml_documents_every_key(name: str) -> None:
    assert_every_key_is_documented(name)
    assert relation_of(name).severities() == (0,) and parts("relations")[name].summary


@pytest.mark.parametrize("name", [*NAMES, "unchanged"])
def test_bundled_relations_pass_the_public_check(name: str) -> None:
    seed = ordered_seed if ".orders." in parts("relations")[name].target else synthetic_prompt
    follow_ups = [
        follow_up for number in range(7) for follow_up in check_relation(relation_of(name), seed(number), may_skip=True)
    ]
    assert follow_ups


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_refuse_images(name: str) -> None:
    with pytest.raises(NotApplicable, match="this case is an image"):
        relation_of(name).sample(synthetic_seed(), 0, np.random.default_rng(0))


@given(pool=pools(), draw=draws)
def test_ec_changes_exactly_one_entity(pool: Pool, draw: int) -> None:
    follow = apply_operator("ec", seed_of(pool), draw)
    if follow is None:
        return
    after = follow.prompt.pool
    (at,) = changed(pool, after)
    old, new = pool.entities[at], after.entities[at]
    assert (old.count, old.attributes) == (new.count, new.attributes) and after.triples == pool.triples
    vocabulary = vg150()
    assert new.name in vocabulary.own_classes and vocabulary.counted(new.name) == vocabulary.counted(old.name)
    for entity in pool.entities:
        assert entity.name not in vocabulary.synonyms(new.name)
        assert not vocabulary.is_a(entity.name, new.name) and not vocabulary.is_a(new.name, entity.name)


@given(pool=pools(), draw=draws)
def test_er_r_leaves_a_subset_without_one_triple(pool: Pool, draw: int) -> None:
    follow = apply_operator("er_r", seed_of(pool), draw)
    assert (follow is None) == (len(pool.triples) < 2)
    if follow is None:
        return
    after = follow.prompt.pool
    assert is_part(after, pool) and len(after.triples) == len(pool.triples) - 1
    # the removed entities were ends of that triple alone
    ends = {end for triple in pool.triples for end in (triple.subject, triple.object)}
    remaining_ends = {end for triple in after.triples for end in (triple.subject, triple.object)}
    assert len(pool.entities) - len(ends) == len(after.entities) - len(remaining_ends)


@given(pool=pools(), draw=draws)
def test_er_a_adds_one_attested_triple_with_one_new_entity(pool: Pool, draw: int) -> None:
    follow = apply_operator("er_a", seed_of(pool), draw)
    if follow is None:
        return
    after = follow.prompt.pool
    assert is_part(pool, after) and len(after.triples) == len(pool.triples) + 1
    assert len(after.entities) == len(pool.entities) + 1
    assert vg150().attested(*after.named()[-1])
    assert not any(related(after.entities[-1].name, entity.name) for entity in pool.entities)


@given(pool=pools(), draw=draws)
def test_ss_says_the_same_pool_in_other_words(pool: Pool, draw: int) -> None:
    seed = seed_of(pool)
    follow = apply_operator("ss", seed, draw)
    assert (follow is None) <= (all(len(vg150().synonyms(name)) == 1 for name in pool.names()) or len(pool.names()) > 1)
    if follow is None:
        return
    assert follow.prompt.pool == pool and follow.prompt.text != seed.prompt.text
    words = dict(follow.params["words"])
    assert all(vg150().class_of(word) == name for name, word in words.items())
    assert follow.prompt.text == render(pool, words=words)  # no other word changed, articles agree
    assert follow.effect.data["removed"] == follow.effect.data["added"] == {"entities": [], "triples": []}


@given(pool=pools(fewest_triples=2), draw=draws)
def test_combined_operators_do_both(pool: Pool, draw: int) -> None:
    removed, added = apply_operator("ec_er_r", seed_of(pool), draw), apply_operator("ec_er_a", seed_of(pool), draw)
    for follow, step in ((removed, -1), (added, 1)):
        if follow is None:
            continue
        after = follow.prompt.pool
        assert len(after.triples) == len(pool.triples) + step
        at = follow.params["ec"]["entity"]
        new, old = follow.params["ec"]["name"], pool.entities[at].name
        assert new in after.names() and new not in pool.names()
        changes = follow.effect.data
        assert old in changes["removed"]["entities"] and new in changes["added"]["entities"]
    if added is not None:
        assert added.prompt.pool.entities[-1].name not in pool.names()


@given(pool=pools(), draw=draws)
def test_params_replay_the_case_through_json(pool: Pool, draw: int) -> None:
    seed = seed_of(pool)
    for name in OPERATORS:
        follow, again = apply_operator(name, seed, draw), apply_operator(name, seed_of(pool), draw)
        if follow is None:
            assert again is None
            continue
        replayed = relation_of(name).apply(seed_of(pool), json.loads(json.dumps(dict(follow.params))))
        assert replayed.prompt == follow.prompt == again.prompt and replayed.sha256 == follow.sha256
        assert follow.effect.data == difference(pool, follow.prompt.pool) == replayed.effect.data


@given(pool=pools(), draw=draws)
def test_words_are_the_templates_of_the_changed_pool(pool: Pool, draw: int) -> None:
    for name in ("ec", "er_r", "er_a", "ec_er_r", "ec_er_a"):
        follow = apply_operator(name, seed_of(pool), draw)
        assert follow is None or follow.prompt.text == render(follow.prompt.pool)


# ----------------------------------------------------------------------------------------------------------- by hand


def entity(name: str, count: int | None = 1, *attributes: str) -> Entity:
    return Entity(name=name, count=count, attributes=attributes)


RIDER = pool_of([entity("man"), entity("horse", 1, "brown"), entity("hat")], [(0, "riding", 1), (0, "wearing", 2)])


def test_attested_new_classes_come_first() -> None:
    seed = seed_of(RIDER)
    params = [apply_operator("ec", seed, draw).params for draw in range(60)]
    assert {drawn_params["attested"] for drawn_params in params} <= {"triples", "predicates"}
    ridden = {drawn_params["name"] for drawn_params in params if drawn_params["entity"] == 1}
    assert len(ridden) > 1 and all(vg150().attested("man", "riding", name) for name in ridden)
    anything = load_relation("ec", plausible=False)
    drawn = [anything.sample(seed, 0, np.random.default_rng(draw)) for draw in range(60)]
    assert {drawn_params["attested"] for drawn_params in drawn} == {"no"}
    assert any(
        not vg150().attested("man", "riding", drawn_params["name"])
        for drawn_params in drawn
        if drawn_params["entity"] == 1
    )


def test_new_classes_are_on_the_side_of_a_predicate_that_captions_have() -> None:
    attested = vg150().attested_triples
    pool = pool_of([entity("giraffe"), entity("pizza")], [(0, "wearing", 1)])  # no caption says either of these
    by_side: tuple[set[str], set[str]] = (set(), set())
    for draw in range(40):
        params = relation_of("ec").sample(seed_of(pool), 0, np.random.default_rng(draw))
        if params["attested"] == "predicates":
            by_side[params["entity"]].add(params["name"])
    wearers = {subject for subject, predicate, _ in attested if predicate == "wearing"}
    worn = {name for _, predicate, name in attested if predicate == "wearing"}
    assert by_side[0] and by_side[0] <= wearers and by_side[1] and by_side[1] <= worn


def test_riders_get_no_second_mount() -> None:
    params = [apply_operator("er_a", seed_of(RIDER), draw).params for draw in range(200)]
    of_man = [drawn_params for drawn_params in params if drawn_params["anchor"] == 0 and not drawn_params["subject"]]
    assert of_man and not any(
        drawn_params["predicate"] in ("riding", "sitting on", "standing on") for drawn_params in of_man
    )


def test_ec_of_two_things_of_a_class_renames_one() -> None:
    pool = pool_of([entity("dog"), entity("dog", 1, "black"), entity("bench")], [(0, "near", 1), (1, "on", 2)])
    for draw in range(20):
        follow = apply_operator("ec", seed_of(pool), draw)
        at = follow.params["entity"]
        assert follow.prompt.pool.names()["dog"] == (2 if at == 2 else 1)
        assert follow.effect.data["removed"]["entities"] == [pool.entities[at].name]


def test_ec_with_er_r_keeps_what_it_changed() -> None:
    for draw in range(40):
        follow = apply_operator("ec_er_r", seed_of(RIDER), draw)
        assert follow.params["ec"]["name"] in follow.prompt.pool.names()


def test_removed_classes_do_not_come_back() -> None:
    pool = pool_of([entity("man"), entity("surfboard")], [(0, "holding", 1)])
    for draw in range(60):
        follow = apply_operator("ec_er_a", seed_of(pool), draw)
        removed = pool.entities[follow.params["ec"]["entity"]].name
        assert not related(follow.prompt.pool.entities[-1].name, removed)


def test_classes_among_which_a_suite_chooses() -> None:
    some = load_relation("ec", among=["dog", "umbrella"])
    names = {some.sample(seed_of(RIDER), 0, np.random.default_rng(draw))["name"] for draw in range(40)}
    assert names <= {"dog", "umbrella"} and names


def test_unknown_classes_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="not 'umbrela'; did you mean umbrella"):
        load_relation("ec", among=["dog", "umbrela"])
    with pytest.raises(ValueError, match="world drawn"):
        load_relation("er_a", world="drawn", among=["zebra"])
    with pytest.raises(ValueError, match="severities"):
        load_relation("er_r", severities=[1])


@pytest.mark.parametrize("text", ["An old sofa stands by two armchairs.", "AN OLD SOFA", "Sofa, old"])
def test_ss_changes_a_prompts_own_words(text: str) -> None:
    follow = apply_operator("ss", seed_of(pool_of([entity("couch", 1, "old")]), text), 0)
    assert follow.params == {"words": [["couch", "couch"]]}
    assert follow.prompt.text.lower() == text.lower().replace("sofa", "couch")


def test_ss_keeps_number_article_and_case() -> None:
    pool = pool_of([entity("airplane"), entity("bike", 2)])
    follow = load_relation("ss", words="all").apply(
        seed_of(pool, "An airplane above two Bicycles"), {"words": [["airplane", "plane"], ["bike", "bike"]]}
    )
    assert follow.prompt.text == "A plane above two Bikes"


def test_one_words_class_is_not_found_inside_anothers_name() -> None:
    pool = pool_of([entity("racket"), entity("tennis racket")])
    for draw in range(10):
        follow = apply_operator("ss", seed_of(pool), draw)
        assert follow is None or "racket" not in dict(follow.params["words"])


def test_a_photo_of_stays_a_photo_of() -> None:
    seed = seed_of(pool_of([entity("clock", 2)]), "a photo of two clocks")
    follow = apply_operator("ec", seed, 0)
    assert follow.prompt.text == f"a photo of two {vg150().plural(follow.params['name'])}"
    assert apply_operator("er_a", seed, 0).prompt.text.startswith("a photo of ")


def test_attested_triples_name_what_may_be_named() -> None:
    world = world_of("photographs")
    assert len(world.classes) > 100 and len(world.triples) > 100
    assert not {"guy", "lady", "kid", "men", "people", "plane"} & set(world.classes)
    assert all(vg150().attested(*triple) for triple in world.triples)


def test_alike_classes_are_classes() -> None:
    from medtest.relations.prompts import worlds

    named = {name for group in worlds._alike() for name in group} | worlds.parts()
    assert named <= set(vg150().names), named - set(vg150().names)
    assert worlds.postures() <= set(vg150().relations)


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def masked_language_model(folder: Path, words: list[str]) -> Path:
    """Write a tiny random BERT with these words as its vocabulary."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    vocabulary = [*SPECIAL, *dict.fromkeys(words)]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertForMaskedLM(BertConfig(vocab_size=len(vocabulary), **sizes)).save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_words_that_a_model_adds_are_kept_with_the_case(tmp_path: Path) -> None:
    seed = seed_of(RIDER)
    words = [*seed.prompt.text.lower().replace(".", "").split(), ".", "slowly", "calmly"]
    folder = masked_language_model(tmp_path / "bert", words)
    relation = load_relation("er_r", enrich=str(folder))
    follows = [relation.follow_up(seed, 0, np.random.default_rng(draw)) for draw in range(6)]
    plain = {render(follow.prompt.pool) for follow in follows}
    assert any(follow.prompt.text not in plain for follow in follows)
    (folder / "model.safetensors").unlink()  # the added words are in the parameters
    for follow in follows:
        assert len(follow.prompt.pool.triples) == 1
        again = load_relation("er_r").apply(seed, json.loads(json.dumps(dict(follow.params))))
        assert again.prompt == follow.prompt
    assert set(relation.fingerprint()["enrich"]) >= {"config.json"}


def test_a_missing_folder_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes, match="1 mistake"):
        load_relation("ec", enrich=str(tmp_path / "none")).fingerprint()
    assert load_relation("ec").fingerprint() == {}


def test_pictures_of_a_changed_prompt_share_its_change_and_one_is_the_digest_of_before() -> None:
    several, alone = load_relation("ec", pictures=3, repeats=2), load_relation("ec")
    cases = [Address(dataset="d", seed_id="s", relation="ec", repeat=repeat) for repeat in range(6)]
    drawn = [several.generator(case, 7).integers(2**32) for case in cases]
    assert several.repeats() == 6 and len(set(drawn[:3])) == len(set(drawn[3:])) == 1 and drawn[0] != drawn[3]
    assert drawn[0] == alone.generator(cases[0], 7).integers(2**32)
    assert "pictures" not in alone.settings.counted() and several.settings.counted()["pictures"] == 3
