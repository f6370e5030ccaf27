"""Stool and blood of levels: they nest, keep off the lesion and its rim, and follow from their parameters."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import pytest

from medtest.core.cases import Address, FollowUp, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.relations.base import Relation
from medtest.testing import SUITE_SEED, load_relation, synthetic_seed

COVERING = ("blood", "feces")


@cache
def seed_of(number: int) -> PreparedSeed:
    return synthetic_seed(number, height=288, width=320)


def ladder_of(name: str, seed: PreparedSeed) -> list[FollowUp | None]:
    relation = load_relation(name)
    return [made(relation, name, seed, severity) for severity in relation.severities()]


def made(relation: Relation, name: str, seed: PreparedSeed, severity: int) -> FollowUp | None:
    address = Address(dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=name, severity=severity)
    try:
        return relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))
    except NotApplicable:
        return None


@pytest.mark.parametrize("name", COVERING)
def test_a_severity_covers_more_of_the_same(name: str) -> None:
    for number in range(4):
        seed = seed_of(number)
        ladder = ladder_of(name, seed)
        results = [follow_up for follow_up in ladder if follow_up is not None]
        assert [follow_up is None for follow_up in ladder] == sorted(follow_up is None for follow_up in ladder)
        changes = [np.abs(item.image.astype(int) - seed.image).max(axis=2) for item in results]
        means = [0.0, *(float(change.mean()) for change in changes)]
        assert all(low < high for low, high in zip(means, means[1:], strict=False)), means
        for low, high in zip(changes, changes[1:], strict=False):
            assert np.count_nonzero((low > 20) & (high <= 4)) <= 0.02 * np.count_nonzero(low > 20)
        assert len({(str(item.params["matter"]), item.params["ladder"]) for item in results}) == 1


@pytest.mark.parametrize("name", COVERING)
def test_lesion_rim_ring_and_frame_stay(name: str) -> None:
    for number in range(4):
        seed = seed_of(number)
        assert seed.mask is not None
        width = max(1, round(0.05 * 2 * np.sqrt(np.count_nonzero(seed.mask) / np.pi)))
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * width + 1, 2 * width + 1))
        ring = cv2.dilate(seed.mask.view(np.uint8), disc).astype(bool) & ~seed.mask & ~seed.frame
        for follow_up in ladder_of(name, seed):
            if follow_up is not None:
                changed = (follow_up.image != seed.image).any(axis=2)
                assert not changed[seed.mask | seed.frame].any()
                assert changed[ring].mean() <= 0.05


@pytest.mark.parametrize("name", COVERING)
def test_parameters_alone_make_the_same_bytes(name: str) -> None:
    relation, seed = load_relation(name), seed_of(1)
    first = [follow_up for follow_up in ladder_of(name, seed) if follow_up is not None]
    fresh = synthetic_seed(1, height=288, width=320)
    for follow_up in reversed(first):
        assert np.array_equal(relation.apply(fresh, follow_up.params).image, follow_up.image)


@pytest.mark.parametrize("name", COVERING)
def test_area_and_effect_say_what_was_done(name: str) -> None:
    for follow_up in ladder_of(name, seed_of(2)):
        if follow_up is not None:
            assert follow_up.facts["object_area"] == pytest.approx(follow_up.scale / 100, rel=0.02)
            assert follow_up.facts["lesion_distance"] > 0
            data = follow_up.effect.data
            assert data["what"] == name
            places, grid = data["places"], data["grid"]
            assert isinstance(places, list)
            assert isinstance(grid, list)
            assert data["count"] == len(places) >= 1
            assert sum(float(str(share)) for share in grid) == pytest.approx(1.0, abs=0.002)


@pytest.mark.parametrize("name", COVERING)
def test_no_room_is_skip(name: str) -> None:
    seed = seed_of(0)
    from dataclasses import replace

    full = replace(seed, mask=~seed.frame, _memo={})
    assert made(load_relation(name), name, full, 1) is None
