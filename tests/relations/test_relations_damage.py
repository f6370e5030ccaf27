"""Severity means more damage: the mean absolute difference grows with it on phantoms, for every relation."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import pytest

from medtest.core.cases import Address, PreparedSeed, Seed, SeedRef
from medtest.core.errors import NotApplicable
from medtest.core.plugins import parts
from medtest.phantoms.colon import colon_rng, make_colon
from medtest.preparation.prepare import prepare
from medtest.testing import SUITE_SEED

NAMES = sorted(
    name
    for name, info in parts("relations").items()
    if info.load().group not in {"library", "noise", "measured", "floor", "adversarial", "prompts", "controls"}
    and ".corruptions." not in info.target
)
PHANTOMS = 10
REPEATS = 2


@cache
def phantoms() -> tuple[PreparedSeed, ...]:
    made = []
    for index in range(PHANTOMS):
        phantom = make_colon(colon_rng(SUITE_SEED, "damage", index), size=(288, 384), polyps=1)
        ref = SeedRef(dataset="damage", seed_id=f"p{index}")
        made.append(prepare(Seed(ref=ref, image=phantom.image, expected=phantom.mask), size=512))
    return tuple(made)


def damage(name: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Mean absolute differences, seeds × severities, of the draws that exist at every severity."""
    info = parts("relations")[name]
    relation = info.load()(info.load().Settings(**info.defaults))
    rows = []
    for seed in phantoms():
        for repeat in range(REPEATS):
            row = []
            for severity in relation.severities():
                address = Address(
                    dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=name, severity=severity, repeat=repeat
                )
                try:
                    made = relation.follow_up(seed, severity, address.generator(SUITE_SEED)).image
                except NotApplicable:
                    break
                row.append(float(cv2.absdiff(made, seed.image).mean()))
            else:
                rows.append(row)
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_damage_grows_with_severity(name: str) -> None:
    found = damage(name)
    assert len(found) >= PHANTOMS * REPEATS // 2, "most phantoms have room at every severity"
    means = found.mean(axis=0)
    assert means[0] > 0.0
    assert np.all(np.diff(means) > 0.0), means.round(3).tolist()


@pytest.mark.parametrize("name", ["saturation", "contrast", "white_balance", "specularity", "blur"])
def test_the_lesion_stays_to_be_seen_at_the_gravest_level(name: str) -> None:
    """Of the difference between lesion and its surroundings, and of detail on it, enough is left."""
    info = parts("relations")[name]
    relation = info.load()(info.load().Settings(**info.defaults))
    left = []
    for seed in phantoms():
        assert seed.mask is not None
        made = relation.follow_up(seed, 5, np.random.default_rng(1)).image
        before, after = (_separation(image, seed.mask, seed.frame) for image in (seed.image, made))
        left.append(after / max(before, 1.0))
    assert np.median(left) > 0.25
    assert min(left) > 0.1


def _separation(image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], mask: object, frame: object) -> float:
    """Largest distance, over the channels, between the mean colours of the lesion and of a ring around it."""
    lesion = np.asarray(mask, dtype=np.uint8)
    ring = cv2.dilate(lesion, np.ones((31, 31), np.uint8)) - lesion
    ring[np.asarray(frame)] = 0
    colours = [image[region > 0].mean(axis=0) for region in (lesion, ring)]
    return float(np.abs(colours[0] - colours[1]).max())
