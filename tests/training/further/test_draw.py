"""Held-out clusters and draws of perturbed images."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.cases import SeedRef
from medtest.core.errors import MedtestError
from medtest.suite.plan import Step
from medtest.training.further.draw import draw_slots, split

RELATIONS = ("saturation", "contrast", "white_balance", "specularity", "blur", "instrument", "feces", "blood", "text")
SHAPE = [Step(relation, severity) for relation in RELATIONS for severity in range(1, 6)]


def _refs(count: int, clusters: int | None = None) -> list[SeedRef]:
    return [
        SeedRef(dataset="training", seed_id=f"s{i:03d}", cluster="" if clusters is None else f"p{i % clusters}")
        for i in range(count)
    ]


@given(
    count=st.integers(4, 80),
    clusters=st.one_of(st.none(), st.integers(4, 20)),
    held=st.sampled_from([0.1, 1, 5, 40]),
    seed=st.integers(0, 1000),
)
def test_split_keeps_clusters_whole(count, clusters, held, seed):
    refs = _refs(count, clusters)
    prints = [f"picture {i}" for i in range(count)]
    try:
        trained, watched = split(refs, prints, held_out=held, seed=seed)
    except MedtestError:
        assert clusters is not None  # one patient may be more than a third of the images
        return
    assert sorted([*trained, *watched]) == list(range(count))
    assert len(watched) >= 1 and len(trained) >= len(watched)
    assert not {refs[i].cluster for i in trained} & {refs[i].cluster for i in watched}


def test_split_holds_out_the_same_seeds_as_the_bundled_training():
    trained, watched = split(_refs(600), [str(i) for i in range(600)], held_out=40, seed=0)
    order = np.random.Generator(np.random.PCG64([0, 3])).permutation(600)
    assert list(watched) == list(order[:40]) and list(trained) == list(order[40:])


def test_equal_pictures_are_not_separated():
    prints = [f"picture {i // 2}" for i in range(40)]
    trained, watched = split(_refs(40), prints, held_out=10, seed=1)
    assert not {prints[i] for i in trained} & {prints[i] for i in watched}


def test_a_single_patient_cannot_be_split():
    with pytest.raises(MedtestError, match="too few to hold any out"):
        split(_refs(10, 1), [str(i) for i in range(10)], held_out=2, seed=0)


def test_balanced_draws_take_every_image_and_relation_equally_often():
    refs = dict(enumerate(_refs(90)))
    slots = draw_slots(refs, SHAPE, count=90, order="balanced", seed=0)
    assert Counter(index for index, _ in slots) == Counter(range(90))
    assert set(Counter(cases[0].relation for _, cases in slots).values()) == {10}
    assert {cases[0].severity for _, cases in slots} == {1, 2, 3, 4, 5}


def test_random_draws_are_without_repetition_and_reproducible():
    refs = dict(enumerate(_refs(20)))
    slots = draw_slots(refs, SHAPE, count=200, order="random", seed=3)
    first = [cases[0] for _, cases in slots]
    assert len(set(first)) == 200
    assert {address.relation for address in first} == set(RELATIONS)
    again = draw_slots(refs, SHAPE, count=200, order="random", seed=3)
    assert slots == again and slots != draw_slots(refs, SHAPE, count=200, order="random", seed=4)
    assert slots != draw_slots(refs, SHAPE, count=200, order="random", seed=3, held=True)
    assert all(len(set(cases)) == len(cases) > 5 for _, cases in slots)
    assert all(address.seed_id == refs[index].seed_id for index, cases in slots for address in cases)


def test_a_draw_beyond_all_images_starts_again():
    slots = draw_slots(dict(enumerate(_refs(2))), SHAPE[:3], count=10, order="random", seed=0)
    assert Counter(cases[0] for _, cases in slots).most_common(1)[0][1] == 2
    assert draw_slots({}, SHAPE, count=3, order="random", seed=0) == []
