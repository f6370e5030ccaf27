"""Streak, smoke, fog, bubbles and drops: their equations, and levels that contain one another."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import cv2
import numpy as np
import pytest
from scipy import ndimage

from medtest.core.cases import Address, FollowUp, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.preparation.visibility import keeps_lesion_visible, lesion_diameter
from medtest.relations.base import Relation
from medtest.relations.clinical.streak import GAMMA, HEADROOM, LESION_SHARE, line
from medtest.relations.clinical.veil import PATH, clouds
from medtest.relations.placement import lesion_distance
from medtest.testing import SUITE_SEED, load_relation, synthetic_seed

NESTED = ("bubbles", "specularity", "lens_drop", "lens_fog", "smoke", "streak")


@cache
def seed_of(number: int) -> PreparedSeed:
    return synthetic_seed(number, height=288, width=320)


def make_follow_up(relation: Relation, name: str, seed: PreparedSeed, severity: int) -> FollowUp | None:
    address = Address(dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=name, severity=severity)
    try:
        return relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))
    except NotApplicable:
        return None


@pytest.mark.parametrize("name", NESTED)
def test_each_severity_changes_more_than_the_one_below(name: str) -> None:
    relation = load_relation(name)
    for number in range(4):
        seed, changes = seed_of(number), [0.0]
        results = [make_follow_up(relation, name, seed, severity) for severity in relation.severities()]
        for follow_up in results:
            if follow_up is not None:
                changes.append(float(np.abs(follow_up.image.astype(int) - seed.image).mean()))
        assert all(low < high for low, high in zip(changes, changes[1:], strict=False)), changes
        assert len(changes) > 2
        skipped = [follow_up is None for follow_up in results]
        assert skipped == sorted(skipped), "a level has room and the one below has none"


@pytest.mark.parametrize(("name", "key"), [("bubbles", "bubbles"), ("lens_drop", "drops")])
def test_a_level_holds_the_objects_of_the_level_below(name: str, key: str) -> None:
    relation = load_relation(name)
    for number in range(3):
        lists: list[Any] = []
        for severity in relation.severities():
            follow_up = make_follow_up(relation, name, seed_of(number), severity)
            if follow_up is not None:
                lists.append(follow_up.params[key])
        assert all(
            high[: len(low)] == low and len(high) > len(low) for low, high in zip(lists, lists[1:], strict=False)
        )


@pytest.mark.parametrize("name", ["bubbles", "lens_drop"])
@pytest.mark.parametrize("placement", ["beside", "far", "on"])
def test_circles_are_where_the_setting_says(name: str, placement: str) -> None:
    relation = load_relation(name, placement=placement, levels={1: {"count": 1}}, severities=[1], radius=0.02)
    for number in range(4):
        seed = seed_of(number)
        follow_up = make_follow_up(relation, name, seed, 1)
        distance = lesion_distance(seed)
        assert distance is not None
        assert seed.mask is not None
        if follow_up is None:
            continue
        changed = (follow_up.image != seed.image).any(axis=2)
        drawn: Any = follow_up.params["bubbles" if name == "bubbles" else "drops"]
        column, row, radius = drawn[0] if name == "bubbles" else (drawn[0][key] for key in ("x", "y", "radius"))
        if placement == "on":
            assert seed.mask[int(row), int(column)]
        else:
            assert not (changed & seed.mask).any()
            reach = radius if name == "bubbles" else 1.2 * radius
            assert (distance[int(row), int(column)] - reach > 0.2 * seed.height) == (placement == "far")


@pytest.mark.parametrize("degrees", [0.0, 30.0, 45.0, 90.0, 137.0])
@pytest.mark.parametrize("length", [1.5, 6.0, 15.0, 28.7])
def test_the_line_is_centred_and_as_long_as_it_says(length: float, degrees: float) -> None:
    offsets, weights = line(length, degrees)
    assert weights.sum() == pytest.approx(1.0)
    assert np.abs(weights @ offsets).max() < 1e-12
    assert {(row, column) for row, column in offsets} == {(-row, -column) for row, column in offsets}
    # The standard deviation of a line of even weight is its length / √12.
    assert np.sqrt(weights @ (offsets**2).sum(axis=1)) == pytest.approx(length / np.sqrt(12), abs=0.75)


def test_streak_is_a_convolution_in_linear_light() -> None:
    seed = synthetic_seed(3, labelled=False, framed=False, height=96, width=120)
    seed = replace(seed, image=np.minimum(seed.image, 249), _memo={})
    relation = load_relation("streak")
    params = {"angle": 25.0, "length": 9.0, "scale": 0.1}
    offsets, weights = line(9.0, 25.0)
    kernel = np.zeros((31, 31))
    for (row, column), weight in zip(offsets, weights, strict=True):
        kernel[15 + row, 15 + column] += weight
    light = (seed.image / 255.0) ** GAMMA
    expected = 255 * ndimage.correlate(light, kernel[:, :, None], mode="nearest") ** (1 / GAMMA)
    assert np.abs(relation.apply(seed, params).image - expected).max() <= 1.5


def test_a_reflection_becomes_a_bright_streak() -> None:
    seed = synthetic_seed(3, labelled=False, framed=False, height=96, width=120)
    image = np.full_like(seed.image, 90)
    image[48:51, 60:63] = 255
    streak = load_relation("streak").apply(
        replace(seed, image=image, _memo={}), {"angle": 0.0, "length": 12.0, "scale": 0.1}
    )
    light = 3 / 12 * HEADROOM + 9 / 12 * (90 / 255) ** GAMMA
    assert streak.image[49, 61, 0] == pytest.approx(255 * light ** (1 / GAMMA), abs=8)


def test_streaks_are_short_against_the_lesion() -> None:
    relation = load_relation("streak")
    for number in range(4):
        seed = seed_of(number)
        diameter = lesion_diameter(seed)
        assert diameter is not None
        for severity in relation.severities():
            follow_up = make_follow_up(relation, "streak", seed, severity)
            if follow_up is not None:
                length = follow_up.params["length"]
                assert isinstance(length, float)
                assert length <= LESION_SHARE * diameter + 0.01
                assert ("scale_applied" in follow_up.params) == (length < follow_up.scale * seed.height - 0.01)


def test_a_small_lesion_allows_no_streak() -> None:
    seed = seed_of(0)
    mask = np.zeros_like(seed.frame)
    mask[140:148, 150:158] = True
    with pytest.raises(NotApplicable, match="small"):
        load_relation("streak").sample(replace(seed, mask=mask, _memo={}), 5, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["smoke", "lens_fog"])
def test_a_veil_follows_the_haze_equation_on_plain_colour(name: str) -> None:
    seed = synthetic_seed(1, labelled=False, framed=False, height=96, width=120)
    plain = replace(seed, image=np.full_like(seed.image, (150, 80, 60)), _memo={})
    params = {"thickness": 0.4, "softening": 0.5, "noise_seed": 7, "light": [210, 222, 220], "sigma": 2.0, "scale": 0.4}
    image = load_relation(name).apply(plain, params).image.astype(float)
    share = (np.array([210.0, 222.0, 220.0]) - image) / (np.array([210.0, 222.0, 220.0]) - (150, 80, 60))
    assert np.ptp(share, axis=2).max() < 0.03  # the three channels have one path
    assert np.exp(-0.4 * PATH[1]) - 0.02 <= share.min() < share.max() <= np.exp(-0.4 * PATH[0]) + 0.02


def test_clouds_span_the_path_smoothly() -> None:
    path = clouds(5, 120, 160).astype(int)
    assert path.min() <= 2
    assert path.max() >= 253  # peaks are between the centres of cells
    assert np.abs(np.diff(path, axis=1)).max() < 30


@pytest.mark.parametrize("name", ["smoke", "lens_fog"])
def test_a_veil_that_would_hide_the_lesion_is_weakened_and_says_so(name: str) -> None:
    weak = {level: {"thickness": thickness, "softening": 0.3} for level, thickness in enumerate((0.2, 3.0), start=1)}
    relation = load_relation(name, severities=[1, 2])
    relation = type(relation)(relation.Settings(**{**relation.settings.model_dump(), "levels": weak}))
    for number in range(3):
        seed = seed_of(number)
        follow_up = make_follow_up(relation, name, seed, 2)
        assert follow_up is not None
        assert keeps_lesion_visible(seed, follow_up.image)
        applied = follow_up.params["scale_applied"]
        assert isinstance(applied, float)
        assert 0.2 < applied < follow_up.scale == 3.0


def test_a_bubble_has_the_measured_profile() -> None:
    """242 bubbles in capsules: −4 L at 0.3 of the radius, −5 at 0.5, 0 at 0.7, +5 at 0.9, +3 at 1, −1 at 1.2."""
    seed = synthetic_seed(1, labelled=False, framed=False, height=200, width=200)
    plain = replace(seed, image=np.full_like(seed.image, (158, 91, 59)), _memo={})
    params = {"bubbles": [[100.0, 100.0, 40.0]], "scale": 1.0}
    image = load_relation("bubbles").apply(plain, params).image
    light = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)[..., 0] / 2.55
    share = np.hypot(*np.mgrid[-100:100, -100:100]) / 40.0
    for at, expected in ((0.3, -4.0), (0.5, -5.0), (0.7, 0.0), (0.9, 5.0), (1.0, 3.0), (1.2, -1.0)):
        ring = np.median(light[np.abs(share - at) < 0.04]) - light[0, 0]
        assert ring == pytest.approx(expected, abs=1.5), at
