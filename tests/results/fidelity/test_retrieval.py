"""R-precision: winning captions, distractors, and the encoder without a network."""

from __future__ import annotations

import numpy as np
import pytest

from medtest.core.scenes import Entity, Scene, SeenEntity, Tells, dumped, pool_of
from medtest.results.fidelity.measures.retrieval import cosine, r_precision
from medtest.results.fidelity.structure import pool_terms, structural
from tests.results.fidelity.array_features import ArrayFeatures


def _unit(count: int) -> ArrayFeatures:
    return ArrayFeatures(np.eye(count, dtype=np.float32))


def test_a_picture_that_fits_its_own_caption_best_finds_it_among_99() -> None:
    count = 300
    own = np.arange(count)
    names = [f"case {n}" for n in range(count)]
    won, against = r_precision(cosine(_unit(count), _unit(count)), own, names, names)
    assert won.tolist() == [1.0] * count
    assert set(against.tolist()) == {99}
    lost, _ = r_precision(cosine(_unit(count), ArrayFeatures(-np.eye(count))), own, names, names)
    assert lost.tolist() == [0.0] * count


def test_pictures_that_show_nothing_win_by_chance_alone() -> None:
    count = 400
    nothing = ArrayFeatures(np.zeros((count, 8)))
    names = [f"case {n}" for n in range(count)]
    captions = ArrayFeatures(np.random.default_rng(1).normal(size=(count, 8)))
    won, _ = r_precision(cosine(nothing, captions), np.arange(count), names, names)
    assert won.tolist() == pytest.approx([0.01] * count)
    noise = ArrayFeatures(np.random.default_rng(2).normal(size=(count, 8)))
    won, _ = r_precision(cosine(noise, captions), np.arange(count), names, names)
    assert 0 <= won.mean() < 0.035  # 1 % and three standard errors


def test_a_caption_of_the_same_meaning_is_not_a_distractor() -> None:
    features = ArrayFeatures(np.ones((6, 2)))
    meanings = ["a dog"] * 5 + ["a cat"]
    won, against = r_precision(cosine(features, features), np.arange(6), meanings, list("abcdef"))
    assert against.tolist() == [1, 1, 1, 1, 1, 5]
    assert won.tolist() == pytest.approx([0.5] * 5 + [1 / 6])
    alone, none = r_precision(cosine(features, features), np.arange(6), ["one"] * 6, list("abcdef"))
    assert np.isnan(alone).all() and not none.any()


def test_the_distractors_of_a_picture_depend_on_its_name_alone() -> None:
    rng = np.random.default_rng(4)
    pictures, captions = rng.normal(size=(50, 4)), rng.normal(size=(500, 4))
    own = np.arange(50)
    meanings = [str(n) for n in range(500)]
    names = [f"case {n}" for n in range(50)]
    whole, _ = r_precision(cosine(ArrayFeatures(pictures), ArrayFeatures(captions)), own, meanings, names)
    order = rng.permutation(50)
    some, _ = r_precision(
        cosine(ArrayFeatures(pictures[order]), ArrayFeatures(captions)), own[order], meanings, [names[n] for n in order]
    )
    assert some.tolist() == whole[order].tolist()


DOG = pool_of([Entity(name="dog", count=2, attributes=("brown",)), Entity(name="bench")], [(0, "on", 1)])


def _fit(scene: Scene, *pools: object, tells: Tells = Tells()) -> list[float]:  # noqa: B008
    texts = [dumped(pool.as_json()) for pool in pools]  # type: ignore[attr-defined]
    fit = structural([dumped(scene.as_json())], [dumped(tells.as_json())], texts)
    fits: list[float] = fit(np.array([0]), np.arange(len(texts))[None])[0].tolist()
    return fits


def test_the_terms_of_a_pool_are_its_entities_with_their_count_attributes_and_relations() -> None:
    assert pool_terms(DOG) == {
        ("is there", "dog", 0): 1,
        ("is there", "dog", 1): 1,
        ("is there", "bench", 0): 1,
        ("is", "dog", "brown"): 1,
        ("does", "dog", "on", "bench"): 1,
    }
    tells = Tells(classes=frozenset({"dog"}), attributes=frozenset(), counts=False)
    assert pool_terms(DOG, tells) == {("is there", "dog", 0): 1}


def test_a_scene_fits_the_caption_best_that_names_exactly_what_it_shows() -> None:
    scene = Scene(
        entities=(SeenEntity(name="dog", attributes=("brown",)), SeenEntity(name="dog"), SeenEntity(name="bench")),
        triples=DOG.triples[:0],
    )
    one_dog = pool_of([Entity(name="dog")])
    cat = pool_of([Entity(name="cat"), Entity(name="bench")])
    fits = _fit(scene, DOG, one_dog, cat)
    assert fits[0] == pytest.approx(4 / np.sqrt(5))
    assert fits[1] == pytest.approx(1.0)
    assert fits[2] == pytest.approx(1 / np.sqrt(2))


def test_what_the_reader_cannot_tell_costs_a_caption_nothing() -> None:
    scene = Scene(entities=(SeenEntity(name="dog"),))
    both = pool_of([Entity(name="dog"), Entity(name="cloud")])
    assert _fit(scene, both, tells=Tells(classes=frozenset({"dog"}))) == pytest.approx([1.0])
    assert _fit(scene, both) == pytest.approx([1 / np.sqrt(2)])
    assert _fit(scene, pool_of([Entity(name="cloud")]), tells=Tells(classes=frozenset({"dog"}))) == [0.0]
