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
    seeds = []
    for index in range(PHANTOMS):
        phantom = make_colon(colon_rng(SUITE_SEED, "damage", index), size=(288, 384), polyps=1)
        ref = SeedRef(dataset="damage", seed_id=f"p{index}")
        seeds.append(prepare(Seed(ref=ref, image=phantom.image, expected=phantom.mask), size=512))
    return tuple(seeds)


def damage(name: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return mean absolute differences, seeds × severities, of the draws that exist at every severity."""
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
                    changed = relation.follow_up(seed, severity, address.generator(SUITE_SEED)).image
                except NotApplicable:
                    break
                row.append(float(cv2.absdiff(changed, seed.image).mean()))
            else:
                rows.append(row)
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_damage_grows_with_severity(name: str) -> None:
    differences = damage(name)
    assert len(differences) >= PHANTOMS * REPEATS // 2, "most phantoms have room at every severity"
    means = differences.mean(axis=0)
    assert means[0] > 0.0
    assert np.all(np.diff(means) > 0.0), means.round(3).tolist()


@pytest.mark.parametrize("name", ["saturation", "contrast", "white_balance", "specularity", "blur"])
def test_the_lesion_stays_visible_at_the_highest_level(name: str) -> None:
    """Enough remains of the difference between lesion and surroundings, and of its detail."""
    info = parts("relations")[name]
    relation = info.load()(info.load().Settings(**info.defaults))
    shares = []
    for seed in phantoms():
        assert seed.mask is not None
        changed = relation.follow_up(seed, 5, np.random.default_rng(1)).image
        before, after = (_separation(image, seed.mask, seed.frame) for image in (seed.image, changed))
        shares.append(after / max(before, 1.0))
    assert np.median(shares) > 0.25
    assert min(shares) > 0.1


def _separation(image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], mask: object, frame: object) -> float:
    """Return the largest distance, over channels, between the mean colours of the lesion and of a ring around it."""
    lesion = np.asarray(mask, dtype=np.uint8)
    ring = cv2.dilate(lesion, np.ones((31, 31), np.uint8)) - lesion
    ring[np.asarray(frame)] = 0
    colours = [image[region > 0].mean(axis=0) for region in (lesion, ring)]
    return float(np.abs(colours[0] - colours[1]).max())
