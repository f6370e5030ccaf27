"""Reflections: those of real tissue in levels, equation 1 in published mode, lesions and frame."""

from __future__ import annotations

import hashlib
import json
import platform
from typing import Any

import cv2
import numpy as np
import pytest
import yaml

from medtest.core.cases import Address, PreparedSeed, image_sha256
from medtest.core.errors import NotApplicable
from medtest.core.files.paths import conf_folder
from medtest.relations.clinical.specularity import LESION_COVER, Specularity, SpecularityLevel, bright_clusters
from medtest.testing import SUITE_SEED, synthetic_seed


def specularity(**changes: object) -> Specularity:
    content = yaml.safe_load((conf_folder() / "relations" / "specularity.yaml").read_text(encoding="utf-8"))
    defaults = {key: value for key, value in content.items() if key not in ("class", "summary")}
    return Specularity(Specularity.Settings(**{**defaults, **changes}))


def spots_of(params: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.array([spot for group in params["clusters"] for spot in group])


def replaced(seed: PreparedSeed, **arrays: Any) -> PreparedSeed:
    for key, value in arrays.items():
        object.__setattr__(seed, key, value)
    return seed


def test_the_scale_is_the_largest_area_of_all_spots() -> None:
    level = SpecularityLevel(spots=10, radius=0.05)
    assert level.scale == pytest.approx(0.0785398163)  # ten circles of radius 0.05


def test_clusters_are_found_where_highlights_were_drawn() -> None:
    seed = synthetic_seed(0, height=192, width=256)
    image = np.zeros_like(seed.image)
    image[:] = (150, 80, 60)
    image[40:44, 60:64] = 250
    image[44:47, 66:69] = 250
    image[120:124, 200:204] = 250
    image[seed.frame] = 0
    clusters = bright_clusters(replaced(seed, image=image))
    assert len(clusters) == 2
    assert tuple(clusters[0, :2]) == (pytest.approx(63.5, abs=2.5), pytest.approx(43.0, abs=2.5))
    assert tuple(clusters[1, :2]) == (pytest.approx(201.5, abs=2.0), pytest.approx(121.5, abs=2.0))
    assert clusters[0, 3] > clusters[1, 3]
    assert clusters[:, 3].sum() == pytest.approx(1.0)


def test_a_wide_glare_is_no_cluster_when_there_is_a_highlight() -> None:
    seed = synthetic_seed(0, height=192, width=256)
    image = np.zeros_like(seed.image)
    image[:] = (150, 80, 60)
    image[100:170, 100:200] = 255
    image[50:54, 80:84] = 250
    image[seed.frame] = 0
    clusters = bright_clusters(replaced(seed, image=image))
    assert tuple(clusters[0, :2]) == (pytest.approx(81.5, abs=2.0), pytest.approx(51.5, abs=2.0))


def test_published_spots_stay_near_their_cluster_and_within_lambda() -> None:
    relation = specularity(mode="published")
    for number in range(5):
        seed = synthetic_seed(number, height=288, width=320)
        for draw in range(5):
            params = relation.sample(seed, 0, np.random.default_rng([number, draw]))
            spots = spots_of(params)
            assert 1 <= len(spots) <= 40
            assert spots[:, 2:4].max() <= 0.03 * seed.height + 0.01
            assert spots[:, 2:4].min() > 0.0
            assert 1 <= len(params["clusters"]) <= 3
            centres = bright_clusters(seed)[:, :2]
            reach = 0.035 * seed.height + 0.5 * bright_clusters(seed)[:, 2].max()
            nearest = np.linalg.norm(spots[:, None, :2] - centres[None], axis=2).min(axis=1)
            assert nearest.max() < 5.0 * reach
            rows, columns = np.rint(spots[:, 1]).astype(int), np.rint(spots[:, 0]).astype(int)
            assert not seed.frame[rows, columns].any()


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="bytes are promised per CPU architecture")
def test_published_mode_keeps_its_bytes() -> None:
    relation, digest = specularity(mode="published"), hashlib.sha256()
    for number in range(4):
        seed = synthetic_seed(number)
        address = Address(dataset="golden", seed_id=seed.ref.seed_id, relation="specularity", severity=0, repeat=number)
        result = relation.follow_up(seed, 0, relation.generator(address, SUITE_SEED))
        digest.update(image_sha256(result.image).encode())
        digest.update(json.dumps(result.params, sort_keys=True).encode())
    assert digest.hexdigest()[:16] == "dab411b8cf20ac60"


def test_made_reflections_measure_like_real_ones() -> None:
    """Area, elongation and colour where V ≥ 235 and S < 27 %, as in 5,780 reflections of Kvasir-SEG (at 512 pixels)."""
    areas, ratios, colours = [], [], []
    for number in range(3):
        seed = synthetic_seed(number, height=512, width=512)
        changed = specularity().follow_up(seed, 5, np.random.default_rng(number)).image
        hsv = cv2.cvtColor(changed, cv2.COLOR_RGB2HSV)
        spots = (hsv[..., 2] >= 235) & (hsv[..., 1] < 0.27 * 255) & (changed != seed.image).any(axis=2)
        _, labels, stats, _ = cv2.connectedComponentsWithStats(spots.view(np.uint8))
        areas += [area for area in stats[1:, 4] if area >= 3]
        colours.append(changed[spots])
        for label in np.flatnonzero(stats[:, 4] >= 6)[1:]:
            spread = np.linalg.eigvalsh(np.cov(np.nonzero(labels == label)) + np.eye(2) / 12)
            ratios.append(np.sqrt(spread[1] / spread[0]))
    assert 150 < len(areas) <= 297
    assert 8.0 <= np.median(areas) <= 17.0
    assert 50 < np.percentile(areas, 90) < 110
    assert 1.6 < np.median(ratios) < 2.3
    assert np.concatenate(colours).mean(axis=0) == pytest.approx((248, 230, 212), abs=14)


def test_a_reflection_falls_off_into_a_dark_ring() -> None:
    seed = synthetic_seed(0, height=512, width=512, labelled=False, framed=False)
    seed = replaced(seed, image=np.full_like(seed.image, (150, 90, 70)))
    changed = specularity().apply(seed, {"spots": [[256.0, 256.0, 6.0, 6.0, 0.0, 0]], "scale": 0.1}).image
    core = changed[..., 1].max() - 90.0
    distance = cv2.distanceTransform((changed[..., 1] < 90 + 0.7 * core).view(np.uint8), cv2.DIST_L2, 5)
    steps = [(changed[..., 1][np.rint(distance) == away].mean() - 90.0) / core for away in range(1, 7)]
    assert 0.25 < steps[0] < 0.55
    assert all(-0.14 < step < -0.03 for step in steps[1:4])
    assert steps[5] == 0.0


def test_levels_contain_one_another_and_grow() -> None:
    relation = specularity()
    for number in range(5):
        seed = synthetic_seed(number, height=288, width=320)
        below: list[Any] = []
        change = 0.0
        for severity in relation.severities():
            address = Address(dataset="d", seed_id="s", relation="specularity", severity=severity, repeat=number)
            result = relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))
            spots: Any = result.params["spots"]
            assert len(spots) == relation.settings.levels[severity].spots
            assert spots[: len(below)] == below
            assert np.array_equal(result.image[seed.frame], seed.image[seed.frame])
            mean = float(np.abs(result.image.astype(int) - seed.image).mean())
            assert mean > change
            below, change = spots, mean


def test_reflections_lie_in_the_light() -> None:
    seed = synthetic_seed(0, height=288, width=320, labelled=False, framed=False)
    image = np.full_like(seed.image, (150, 90, 70))
    image[:, 160:] = (20, 12, 9)
    spots: Any = specularity().sample(replaced(seed, image=image), 5, np.random.default_rng(0))["spots"]
    assert np.mean([spot[0] < 170 for spot in spots]) > 0.95


def test_an_upright_ellipse_is_equation_1() -> None:
    seed = synthetic_seed(0, height=120, width=160, framed=False)
    image = np.zeros_like(seed.image)
    seed = replaced(seed, image=image, grey=np.ones(image.shape[:2], np.float32))
    spot = [80.0, 60.0, 24.0, 11.0, 0.0]
    params = {"clusters": [[spot]], "softness": 0.8, "strength": 1.0, "scale": 0.1}
    drawn = specularity().apply(seed, params).image[:, :, 0]
    rows, columns = np.mgrid[0:120, 0:160]
    value = (columns - 80.0) ** 2 / 24.0**2 + (rows - 60.0) ** 2 / 11.0**2
    assert (drawn[value < 0.5] == 255).all()
    assert (drawn[value > 1.5] == 0).all()
    assert (drawn > 127).sum() == pytest.approx(np.pi * 24.0 * 11.0, rel=0.05)
    edge = (value > 0.9) & (value < 1.1)
    assert np.unique(drawn[edge]).size > 10, "edges are blurred"


def test_the_grey_mask_bounds_strength_in_the_dark() -> None:
    seed = synthetic_seed(0, height=120, width=160, framed=False)
    grey = np.ones((120, 160), np.float32)
    grey[:, 80:] = 0.25
    image = np.full_like(seed.image, 20)
    seed = replaced(seed, image=image, grey=grey)
    spots = [[40.0, 60.0, 15.0, 15.0, 0.0], [120.0, 60.0, 15.0, 15.0, 0.0]]
    drawn = specularity().apply(seed, {"clusters": [spots], "softness": 1.0, "strength": 0.9, "scale": 0.1}).image
    assert drawn[60, 40, 0] == pytest.approx(20 + 0.9 * 235, abs=1)
    assert drawn[60, 120, 0] == pytest.approx(20 + 0.25 * 0.9 * 235, abs=1)


def test_published_mode_draws_upright_ellipses_only() -> None:
    relation = specularity(mode="published")
    seed = synthetic_seed(0, height=288, width=320)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert not spots_of(relation.sample(seed, 0, rng))[:, 4].any()
    assert relation.published_status == "assumed"


def test_no_lesion_is_wiped_out() -> None:
    relation = specularity()
    for number in range(8):
        seed = synthetic_seed(number, height=288, width=320)
        # All light falls on the lesion, so every cluster is there.
        assert seed.mask is not None
        image = seed.image.copy()
        image[~seed.mask] = 60
        image[seed.mask] = 70
        rows, columns = np.nonzero(seed.mask)
        for k in range(0, rows.size, rows.size // 6):
            image[rows[k], columns[k]] = 250
        seed = replaced(seed, image=image, grey=np.ones(seed.frame.shape, np.float32))
        try:
            changed = relation.follow_up(seed, 5, np.random.default_rng(number)).image
        except NotApplicable:
            continue
        solid = (np.abs(changed[seed.mask].astype(int) - image[seed.mask]).max(axis=1) > 60).mean()
        assert solid <= LESION_COVER
