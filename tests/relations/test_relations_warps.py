"""Smooth distortions: image and mask move together, the lens has its published formula, the frame stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from medtest.core.cases import Address, FollowUp, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.oracles.moves import moved_mask, moved_points
from medtest.testing import SUITE_SEED, load_relation, synthetic_seed

WARPS = ("breathing", "elastic", "lens_distortion")


def follow_up(name: str, seed: PreparedSeed, severity: int, **settings: Any) -> FollowUp:
    relation = load_relation(name, **settings)
    address = Address(dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=name, severity=severity)
    return relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))


def dice(first: np.ndarray, second: np.ndarray) -> float:
    return 2 * np.count_nonzero(first & second) / (np.count_nonzero(first) + np.count_nonzero(second))


@pytest.mark.parametrize("name", WARPS)
@pytest.mark.parametrize("framed", [True, False])
def test_the_mask_moves_with_the_picture(name: str, framed: bool) -> None:
    seed = synthetic_seed(2, height=240, width=288, framed=framed)
    assert seed.mask is not None
    painted = np.repeat(np.where(seed.mask, 255, 0).astype(np.uint8)[:, :, None], 3, axis=2)
    result = follow_up(name, replace(seed, image=painted, frame=np.zeros_like(seed.frame), _memo={}), 5)
    expected = moved_mask(seed.mask, result.effect)
    assert dice(result.image[..., 0] > 127, expected) >= 0.98
    assert dice(seed.mask, expected) < 0.98  # the mask moved


@pytest.mark.parametrize("name", WARPS)
def test_the_largest_displacement_grows_with_the_severity(name: str) -> None:
    seed = synthetic_seed(1, height=240, width=288)
    largest = []
    for severity in range(1, 6):
        displacements = follow_up(name, seed, severity).effect.displacements
        assert displacements is not None
        largest.append(float(np.hypot(*np.moveaxis(displacements.astype(float), 2, 0)).max()))
        assert not displacements[seed.frame].any()
    assert largest == sorted(set(largest))


@pytest.mark.parametrize("name", WARPS)
def test_the_frame_is_not_drawn_into_the_field(name: str) -> None:
    seed = synthetic_seed(3, height=240, width=288)
    white = np.where(seed.frame[:, :, None], seed.image, np.uint8(255)).astype(np.uint8)
    image = follow_up(name, replace(seed, image=white, _memo={}), 5).image
    assert (image[~seed.frame] == 255).all()
    np.testing.assert_array_equal(image[seed.frame], seed.image[seed.frame])


@pytest.mark.parametrize("name", WARPS)
def test_there_and_back_agree_within_half_a_pixel(name: str) -> None:
    seed = synthetic_seed(0, height=240, width=288, framed=False)
    effect = follow_up(name, seed, 5).effect
    assert effect.displacements is not None
    columns, rows = np.meshgrid(np.arange(30, 258, 6), np.arange(30, 210, 6))
    places = np.stack([columns, rows], axis=-1).astype(float)
    source = places + effect.displacements[rows, columns]
    np.testing.assert_allclose(moved_points(source, effect), places, atol=0.5)


def test_a_lens_follows_its_formula() -> None:
    seed = synthetic_seed(0, height=301, width=401, framed=False)
    relation = load_relation("lens_distortion")
    effect = relation.apply(seed, {"right": 0.0, "down": 0.0, "barrel": 0.3, "scale": 0.3}).effect
    assert effect.displacements is not None
    # A point at radius r' of the follow-up shows r = r' (1 + 0.3 r'²) / 1.3; the corner is at radius 1, 250.7 px.
    corner = np.hypot(401, 301) / 2
    for pixels in (50, 120, 180):
        share = pixels / corner
        radius = corner * share * (1 + 0.3 * share**2) / 1.3
        np.testing.assert_allclose(effect.displacements[150, 200 + pixels], [radius - pixels, 0.0], atol=0.05)
    assert not effect.displacements[150, 200].any()


@pytest.mark.parametrize("name", ["elastic", "breathing"])
def test_the_level_is_the_largest_displacement(name: str) -> None:
    seed = synthetic_seed(0, height=240, width=288, framed=False)
    displacements = follow_up(name, seed, 1, levels={1: {"shift": 0.008}}).effect.displacements
    assert displacements is not None
    assert np.hypot(*np.moveaxis(displacements.astype(float), 2, 0)).max() == pytest.approx(0.008 * 240, rel=0.01)


def test_a_field_that_folds_is_not_applied() -> None:
    seed = synthetic_seed(0, height=240, width=288)
    relation = load_relation("elastic")
    params = relation.sample(seed, 5, np.random.default_rng(0))
    with pytest.raises(NotApplicable, match="folds"):
        relation.apply(seed, {**params, "shift": 0.5})
