"""Levels that would hide a lesion are weakened or skipped; published mode is unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

from medtest.core.cases import Address, FollowUp, PreparedSeed
from medtest.core.errors import LesionInvisible
from medtest.preparation.visibility import CLIPPED, LESION_CLIPPED, is_below_floors, source_visibility, visibility
from medtest.relations.base import Relation
from medtest.testing import SUITE_SEED, load_relation, synthetic_seed

WEAKENED = ("saturation", "contrast", "white_balance", "blur")
NINE = (*WEAKENED, "specularity", "instrument", "feces", "blood", "text")


def faint(number: int, *, step: tuple[int, int, int] = (4, 3, 3), base: int = 120) -> PreparedSeed:
    """Return a seed whose lesion differs from smooth surroundings by some grey levels."""
    seed = synthetic_seed(number, height=160, width=200)
    assert seed.mask is not None
    ramp = np.linspace(-12, 12, seed.width)[None, :, None]
    image = np.rint(np.full(seed.image.shape, base, float) + ramp).astype(np.uint8)
    image[seed.mask] += np.array(step, np.uint8)
    image[seed.frame] = seed.image[seed.frame]
    image.setflags(write=False)
    return replace(seed, image=image, _memo={})


def make_follow_up(relation: Relation, seed: PreparedSeed, severity: int) -> FollowUp | None:
    """Return the follow-up, None if every setting would hide the lesion."""
    address = Address(dataset="d", seed_id=seed.ref.seed_id, relation="r", severity=severity)
    try:
        return relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))
    except LesionInvisible:
        return None


def test_contrast_is_weakened_as_far_as_needed_and_says_so() -> None:
    relation = load_relation("contrast")
    scales = [0.0] + [relation.settings.levels[severity].scale for severity in range(1, 6)]
    weakened = skipped = 0
    for number in range(12):
        seed = faint(number)
        before = source_visibility(seed)
        for severity in range(1, 6):
            follow_up = make_follow_up(relation, seed, severity)
            if follow_up is None:
                skipped += 1
                continue
            assert follow_up.scale == follow_up.params["scale"] == pytest.approx(scales[severity])
            assert not is_below_floors(before, visibility(seed, follow_up.image))
            if "scale_applied" in follow_up.params:
                weakened += 1
                assert scales[severity - 1] < follow_up.params["scale_applied"] < scales[severity]
                full = {**follow_up.params, **relation.settings.levels[severity].model_dump()}
                assert is_below_floors(before, visibility(seed, relation.apply(seed, full).image))
    assert weakened >= 5
    assert skipped >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", NINE)
def test_no_level_of_the_nine_goes_below_the_floors(name: str) -> None:
    relation = load_relation(name)
    for number in range(6):
        for seed in (synthetic_seed(number, height=288, width=320), faint(number), faint(number, step=(9, 5, 5))):
            for severity in (1, 3, 5):
                try:
                    follow_up = make_follow_up(relation, seed, severity)
                except Exception as error:
                    if type(error).__name__ != "NotApplicable":
                        raise
                    continue
                if follow_up is not None:
                    assert not is_below_floors(source_visibility(seed), visibility(seed, follow_up.image))


@pytest.mark.parametrize("name", WEAKENED)
def test_published_mode_is_neither_weakened_nor_skipped(name: str) -> None:
    relation = load_relation(name, mode="published")
    below = 0
    for number in range(8):
        for seed in (faint(number), faint(number, base=235)):
            follow_up = make_follow_up(relation, seed, 0)
            assert follow_up is not None
            assert "scale_applied" not in follow_up.params
            below += is_below_floors(source_visibility(seed), visibility(seed, follow_up.image))
    assert below or name in ("white_balance", "blur")


@pytest.mark.parametrize("name", WEAKENED)
def test_drawing_and_applying_in_two_steps_gives_the_same_bytes(name: str) -> None:
    relation = load_relation(name)
    for number in range(3):
        seed = faint(number)
        for severity in (2, 5):
            follow_up = make_follow_up(relation, seed, severity)
            if follow_up is None:
                continue
            address = Address(dataset="d", seed_id=seed.ref.seed_id, relation="r", severity=severity)
            params = relation.sample(seed, severity, relation.generator(address, SUITE_SEED))
            assert params == follow_up.params
            assert np.array_equal(relation.apply(seed, params).image, follow_up.image)


def test_saturation_burns_out_at_most_a_third_of_a_lesion() -> None:
    relation = load_relation("saturation")
    seed = synthetic_seed(3, height=288, width=320)
    assert seed.mask is not None
    image = seed.image.copy()
    image[seed.mask] = cv2.add(image, (0.0, 60.0, 60.0, 0.0))[seed.mask]
    image = np.where(seed.mask[:, :, None], np.maximum(image, 185), image)
    image[seed.frame] = seed.image[seed.frame]
    seed = replace(seed, image=image, _memo={})
    results: dict[str, int] = {"whole": 0, "weakened": 0, "skipped": 0}
    for severity in range(1, 6):
        follow_up = make_follow_up(relation, seed, severity)
        results["skipped" if follow_up is None else "weakened" if "scale_applied" in follow_up.params else "whole"] += 1
        if follow_up is not None:
            lesion = follow_up.image[seed.mask].min(axis=1) >= CLIPPED
            assert (lesion & (image[seed.mask].min(axis=1) < CLIPPED)).mean() <= LESION_CLIPPED
    assert results["whole"], results
    assert results["weakened"] + results["skipped"], results


def test_seeds_without_a_mask_get_every_level_in_full() -> None:
    seed: Any = replace(faint(1), mask=None, _memo={})
    for name in WEAKENED:
        for severity in range(1, 6):
            follow_up = make_follow_up(load_relation(name), seed, severity)
            assert follow_up is not None
            assert "scale_applied" not in follow_up.params
